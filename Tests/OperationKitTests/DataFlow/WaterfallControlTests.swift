import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Suspending, resuming and cancelling a waterfall.
@Suite("Control of a waterfall", .hangGuard) struct WaterfallControlTests {
    @Test("A waterfall that is suspended between jobs waits, and goes on when it is resumed") func suspension() async {
        let log = EventLog()
        let reached = Gate()
        let holder = Shared<Waterfall<Int, Int>?>(nil)
        let waterfall = Waterfall<Int, Int>()
            .then { input in
                log.add("first")
                holder.value?.suspend()
                reached.open()
                return input + 1
            }
            .then { input in
                log.add("second")
                return input + 1
            }
        holder.value = waterfall
        waterfall.input = 0
        waterfall.start()
        await reached.opened()
        #expect(waterfall.isSuspended && waterfall.isRunning && !waterfall.isCancelled)
        #expect(log.events == ["first"] && !waterfall.isFinished)
        waterfall.resume()
        #expect(try! await waterfall.value == 2)
        #expect(!waterfall.isSuspended && !waterfall.isRunning && log.events == ["first", "second"])
        holder.value = nil
    }

    #if DEBUG
    @Test("While a waterfall is suspended before its start, nothing of it starts") func nothingStartsBefore()
        async throws
    {
        let (log, queue) = (EventLog(), HeldQueue())
        let waterfall = try await startedOnQueue(queue) { self.startedWhileSuspended(log) }
        queue.startAll()
        #expect(log.events.isEmpty && waterfall.isRunning)
        waterfall.resume()
        await eventually("the waterfall does not end") {
            queue.startAll()
            return waterfall.isFinished
        }
        #expect(log.events == ["job"] && waterfall.output == 1)
    }

    @Test("While a waterfall is suspended between jobs, nothing of it starts") func nothingStartsBetween() async throws
    {
        let (log, queue, holder) = (EventLog(), HeldQueue(), Shared<Waterfall<Int, Int>?>(nil))
        let waterfall = try await startedOnQueue(queue) {
            let waterfall = Waterfall<Int, Int>()
                .then { input in
                    log.add("first")
                    holder.value?.suspend()
                    return input + 1
                }
                .thenRun { input in
                    log.add("second")
                    return Step<Int, Int>.increment("step", log: log).with(input: input)
                }
            holder.value = waterfall
            waterfall.input = 0
            waterfall.start()
            return waterfall
        }
        queue.startAll()
        #expect(log.events == ["first"] && waterfall.isRunning)
        waterfall.resume()
        await eventually("the waterfall does not end") {
            queue.startAll()
            return waterfall.isFinished
        }
        #expect(log.events == ["first", "second", "step"] && waterfall.output == 2)
        holder.value = nil
    }

    /// Starts a waterfall on a thread of an operation queue, which runs its first jobs before `start()` returns.
    private func startedOnQueue(
        _ queue: HeldQueue, _ start: @escaping @Sendable () -> Waterfall<Int, Int>
    ) async throws -> Waterfall<Int, Int> {
        let started = Shared<Waterfall<Int, Int>?>(nil)
        let block = BlockOperation { HeldComposites.run(on: queue) { _ in started.value = start() } }
        try await OperationQueue().run(block)
        return try #require(started.value)
    }
    #endif

    @Test("The operation of a job goes on while its waterfall is suspended") func suspendedOperation() async throws {
        let (began, gate, done) = (Gate(), Gate(), Gate())
        let waterfall = Waterfall<Int, Int>()
            .thenRun { _ in
                let step = Step<Void, Int> { step, _ in
                    began.open()
                    elsewhere {
                        gate.pass()
                        step.finish(with: 1)
                    }
                }
                step.asyncCompletionBlock = { _ in done.open() }
                return step
            }
            .then { $0 + 1 }
        waterfall.input = 0
        waterfall.start()
        await began.opened()
        waterfall.suspend()
        gate.open()
        await done.opened()
        #expect(!waterfall.isFinished)
        waterfall.resume()
        #expect(try await waterfall.value == 2)
    }

    @Test("Cancelling a suspended waterfall ends it without calling a job") func cancelledWhileSuspended() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>().then { input in
            log.add("job")
            return input
        }
        waterfall.input = 1
        waterfall.suspend()
        waterfall.start()
        waterfall.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await waterfall.value }
        #expect(log.events.isEmpty && waterfall.isCancelled)
    }

    // MARK: Cancellation

    @Test("A waterfall that is cancelled in a job calls no further one", arguments: 0..<5)
    func cancelledInAJob(at: Int) async {
        let log = EventLog()
        let holder = Shared<Waterfall<Int, Int>?>(nil)
        let waterfall = (0..<5).reduce(Waterfall<Int, Int>()) { waterfall, number in
            waterfall.then { input in
                log.add("\(number)")
                if number == at { holder.value?.cancel() }
                return input + 1
            }
        }
        holder.value = waterfall
        waterfall.input = 0
        await Start.byHand(waterfall)
        holder.value = nil
        #expect(log.events == (0...at).map(String.init))
        #expect(waterfall.error is CancellationError && waterfall.failedStep == nil)
    }

    private func startedWhileSuspended(_ log: EventLog) -> Waterfall<Int, Int> {
        let shorter = Waterfall<Int, Int>()
        shorter.suspend()
        let waterfall = shorter.then { input in
            log.add("job")
            return input
        }
        #expect(waterfall.isSuspended)
        waterfall.input = 1
        waterfall.start()
        return waterfall
    }

    @Test("An operation that ends with success but without an output is an error with its name")
    func aMissingOutputIsAnError() async throws {
        let isCalled = Gate()
        let waterfall = Waterfall<Int, Int>(name: "waterfall")
            .then { $0 + 1 }
            .thenDecide { _ in WaterfallStep<Int>.operation(Outputless()) }
            .then { (value: Int) -> Int in
                isCalled.open()
                return value
            }
        let compound = CompoundOperation(operations: [waterfall.with(input: 0)])
        let error = await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(compound) }
        #expect(waterfall.error as? IOOperationError == .missingOutput(operation: "outputless"))
        #expect(error?.leafErrors.map { $0 as? IOOperationError } == [.missingOutput(operation: "outputless")])
        #expect(waterfall.failedStep?.index == 1 && !isCalled.isOpen)
    }

    /// A class of the user's that a job may return.
    private final class Outputless: AsyncOperation, OutputOperation, @unchecked Sendable {
        let output: Int? = nil

        override init() {
            super.init()
            name = "outputless"
        }
    }

    /// An operation that a job returns although it belongs to a compound.
    private struct Refused: Sendable {
        let made: Step<Int, Int>
        let owner: CompoundOperation
    }

    @Test("An operation that is refused may finish at that moment")
    func rejectedOperation() async {
        await race(
            rounds: 500, seed: 5,
            prepare: { _ in
                let made = Step<Int, Int>("made") { _, _ in }.with(input: 0)
                let owner = CompoundOperation(operations: [made])
                owner.start()
                return Refused(made: made, owner: owner)
            },
            [
                { @Sendable (subject: Refused) in
                    let waterfall = Waterfall<Int, Int>().thenRun { _ in subject.made }.with(input: 0)
                    waterfall.start()
                    waterfall.waitUntilFinished()
                    guard case .alreadyAdded? = waterfall.error as? CompoundAdditionError else {
                        Issue.record("\(String(describing: waterfall.error))")
                        return
                    }
                },
                { @Sendable (subject: Refused) in
                    subject.made.finish(with: 1)
                    subject.owner.waitUntilFinished()
                },
            ], check: { _, _ in })
    }
}
