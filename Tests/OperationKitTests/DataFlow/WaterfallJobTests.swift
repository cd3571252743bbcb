import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The kinds of jobs of a waterfall.
@Suite("Jobs of a waterfall", .hangGuard) struct WaterfallJobTests {
    @Test("A job of each kind makes the result of the type that is given", arguments: Start.allCases)
    func givenTypes(start: Start) async {
        let waterfall = Waterfall<Int, Int>()
            .then(to: String.self) { number in "\(number)" }
            .thenAwait(to: Int.self) { text in
                await Task.yield()
                return text.count
            }
            .thenRun(to: [Int].self) { number in
                number > 1 ? TaskOperation { [number] } : IOBlockOperation<Void, [Int]> { [0, number] }
            }
            .thenDecide(to: Int.self) { numbers in .value(numbers.count) }
        await start(waterfall.with(input: 7))
        #expect(waterfall.output == 2 && waterfall.error == nil)
    }

    @Test("The error of an asynchronous job ends the waterfall, and the job is named by its index")
    func asynchronousFailure() async {
        let isCalled = Gate()
        let waterfall = Waterfall<Int, Int>(name: "waterfall")
            .then { $0 + 1 }
            .thenAwait { input -> Int in
                await Task.yield()
                throw TestError.numbered(input)
            }
            .then { (input: Int) -> Int in
                isCalled.open()
                return input
            }
        await Start.onBusyQueue(waterfall.with(input: 1))
        #expect(text(waterfall.error) == "numbered(2)" && !isCalled.isOpen)
        #expect(waterfall.failedStep?.name == "job 1" && waterfall.failedStep?.index == 1)
    }

    @Test("Cancelling a waterfall cancels the task of an asynchronous job, and the waterfall ends after that")
    func asynchronousCancellation() async {
        let (began, cancelled, gate) = (Gate(), Gate(), Gate())
        let waterfall = Waterfall<Int, Int>()
            .thenAwait { input -> Int in
                began.open()
                do { try await cancellation() } catch { cancelled.open() }
                await Task { await gate.opened() }.value
                throw CancellationError()
            }
            .then { $0 + 1 }
        waterfall.with(input: 1).start()
        await began.opened()
        #expect(waterfall.debugDescription.contains("“job 0”: executing"))
        waterfall.cancel(withError: TestError.reason)
        await cancelled.opened()
        #expect(!waterfall.isFinished)
        gate.open()
        await #expect(throws: TestError.reason) { try await waterfall.value }
    }

    @Test("The task of an asynchronous job has the priority of the waterfall") func priority() async throws {
        let waterfall = Waterfall<Int, Int>().thenAwait { _ in Task.currentPriority }.with(input: 1)
        waterfall.qualityOfService = .utility
        waterfall.start()
        #expect(try await waterfall.value == .utility)
    }

    @Test("A value job that makes an operation, which would not run, is an error that names the job")
    func operationAsValue() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>(name: "waterfall")
            .then { input in
                log.add("first")
                return input
            }
            .then { (input: Int) in
                log.add("second")
                return TaskOperation { input }
            }
            .then { _ in log.add("third") }
        await Start.byHand(waterfall.with(input: 1))
        #expect(waterfall.error as? ChainError == .operationNotRun(job: "job 1", chain: "waterfall"))
        #expect(log.events == ["first"] && waterfall.failedStep?.index == 1)
        #expect(
            waterfall.error?.localizedDescription
                == "“job 1” of “waterfall” makes an operation, which would not run. Use thenRun to run it, "
                + "or thenDecide to pass it on as a value.")
    }

    @Test("An operation is passed on as a value by a job that decides so") func operationPassedOn() async {
        let waterfall = Waterfall<Int, Int>()
            .thenDecide { input in .value(TaskOperation { input + 1 }) }
            .thenRun { operation in operation }
        await Start.byHand(waterfall.with(input: 1))
        #expect(waterfall.output == 2)
    }

    /// The kinds of jobs that fail, each under the same name.
    private static let named: [@Sendable (String?) -> Waterfall<Int, Int>] = [
        { name in first.then(name: name) { _ in throw TestError.first } },
        { name in first.thenAwait(name: name) { _ in throw TestError.first } },
        { name in first.thenRun(name: name) { _ in TaskOperation<Int> { throw TestError.first } } },
        { name in first.thenRun(name: name) { _ -> TaskOperation<Int> in throw TestError.first } },
        { name in first.thenRun(name: name, to: Int.self) { _ in TaskOperation<Int> { throw TestError.first } } },
        { name in first.thenDecide(name: name) { _ in throw TestError.first } },
    ]
    private static var first: Waterfall<Int, Int> { Waterfall<Int, Int>().then(name: "first") { $0 + 1 } }

    @Test("A job that fails is called by its name, also where its operation has none", arguments: named.indices)
    func names(index: Int) async {
        let make = Self.named[index]
        let (named, unnamed) = (make("parse").with(input: 1), make(nil).with(input: 1))
        for waterfall in [named, unnamed] { await Start.byHand(waterfall) }
        #expect(named.failedStep?.name == "parse" && named.failedStep?.index == 1)
        #expect(unnamed.failedStep?.name != "parse" && unnamed.failedStep?.index == 1)
    }

    @Test("An operation that a waterfall refuses is not renamed") func nameOfRefused() async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let child = TaskOperation { 1 }
        let parent = CompoundOperation(operations: [child])
        let executing = [
            TaskOperation {
                begun.open()
                await mayEnd.opened()
            }
        ].gathered()
        executing.start()
        await begun.opened()
        let waterfalls: [AsyncOperation] = [
            Waterfall<Int, Int>().thenRun(name: "job") { _ in child }.with(input: 1),
            Waterfall<Int, Int>().thenRun(name: "job") { _ in executing }.with(input: 1),
        ]
        for waterfall in waterfalls {
            await Start.byHand(waterfall)
            guard case .alreadyAdded? = waterfall.error as? CompoundAdditionError else {
                Issue.record("\(text(waterfall.error))")
                continue
            }
        }
        #expect(child.name == nil && executing.name == nil)
        mayEnd.open()
        try await executing.finished()
        await Start.byHand(parent)
        #expect(child.output == 1)
    }

    @Test("The operation of a job keeps its own name, and one without gets that of the job") func operationNames() async
    {
        let names = EventLog()
        @Sendable func make(_ name: String?) -> IOOperation<Int, Int> {
            Step<Int, Int>(name) { step, input in
                names.add(step.name ?? "none")
                step.finish(with: input)
            }
        }
        let waterfall = Waterfall<Int, Int>()
            .thenRun(name: "job") { make("own").with(input: $0) }
            .thenRun(name: "job") { make(nil).with(input: $0) }
            .thenDecide(name: "decided") { .operation(make(nil).with(input: $0)) }
            .thenRun { make(nil).with(input: $0) }
        await Start.byHand(waterfall.with(input: 1))
        #expect(names.events == ["own", "job", "decided", "none"])
    }
}
