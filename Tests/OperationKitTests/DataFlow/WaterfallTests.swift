import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Jobs one after the other, each from the result of the one before.
@Suite("Waterfall", .hangGuard) struct WaterfallTests {
    @Test(
        "Each job gets the previous result, and returns a value or the operation to run next", arguments: Start.allCases
    )
    func jobs(start: Start) async {
        let waterfall = Waterfall<String, String>()
            .then { $0.count }
            .thenRun { count in IOBlockOperation<Void, Int> { _ in count * 2 } }
            .thenAwait { count in
                await Task.yield()
                return count + 1
            }
            .thenRun { count in TaskOperation { count + 1 } }
            .then { "<\($0)>" }
        waterfall.input = "four"
        await start(waterfall)
        #expect(waterfall.output == "<10>" && waterfall.error == nil && waterfall.failedStep == nil)
    }

    @Test("The output of a waterfall without jobs is its input") func noJobs() async {
        let waterfall = Waterfall<Int, Int>()
        waterfall.input = 3
        await Start.byHand(waterfall)
        #expect(waterfall.output == 3)
    }

    @Test("A job decides at run time between a value and an operation") func valueOrOperation() async {
        for input in [1, 2] {
            let waterfall = Waterfall<Int, Int>().thenDecide(to: Int.self) { input in
                input == 1 ? .value(10) : .operation(TaskOperation { 20 })
            }
            waterfall.input = input
            await Start.byHand(waterfall)
            #expect(waterfall.output == input * 10)
        }
    }

    @Test("Jobs can be added in a loop") func list() async {
        let jobs: [@Sendable (Int) throws -> Int] = [{ $0 + 1 }, { $0 * 2 }, { $0 - 2 }]
        var waterfall = Waterfall<Int, Int>()
        for job in jobs { waterfall = waterfall.then(job) }
        waterfall = waterfall.thenRun { input in TaskOperation { input * 10 } }.with(input: 5)
        await Start.byHand(waterfall)
        #expect(waterfall.output == 100)
    }

    @Test("Optional results pass through unchanged") func optionals() async {
        let waterfall = Waterfall<Int, Int>().then { _ -> Int? in nil }.then { $0 == nil }
        waterfall.input = 1
        await Start.byHand(waterfall)
        #expect(waterfall.output == true)
    }

    @Test("After an error the next job is not called, and the completion gets the error") func failure() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>(name: "waterfall")
            .then { $0 + 1 }
            .then { _ -> Int in throw TestError.first }
            .then { input in
                log.add("next")
                return input
            }
        waterfall.completion = { result in log.add("completion \(result)") }
        waterfall.asyncCompletionBlock = { log.add("block \(text($0))") }
        waterfall.input = 1
        await Start.byHand(waterfall)
        #expect(log.events == ["block first", "completion \(Result<Int, any Error>.failure(TestError.first))"])
        #expect(waterfall.failedStep?.index == 1 && waterfall.failedStep?.name == "job 1")
        #expect(waterfall.failedStep?.siblingCount == 3 && waterfall.name == "waterfall")
    }

    @Test("The error of a job's operation ends the waterfall, and the next job is not called")
    func failedOperation() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>()
            .thenRun { _ in TaskOperation<Int>(name: "request") { throw TestError.second } }
            .then { input in
                log.add("next")
                return input
            }
        waterfall.input = 1
        await Start.onBusyQueue(waterfall)
        #expect(log.events.isEmpty && text(waterfall.error) == "second")
        #expect(waterfall.failedStep?.index == 0 && waterfall.failedStep?.name == "request")
    }

    @Test("The completion gets the result before the waterfall has finished") func completion() async {
        let log = EventLog()
        let waterfall = Waterfall<Int, Int>().then { $0 + 1 }
        waterfall.input = 1
        waterfall.completion = { [unowned waterfall] result in
            log.add("\(result), \(waterfall.isFinished), \(waterfall.output ?? -1)")
        }
        await Start.byHand(waterfall)
        #expect(log.events == ["\(Result<Int, any Error>.success(2)), false, 2"])
        waterfall.completion = { _ in }
        #expect(waterfall.completion == nil)
    }

    // MARK: Nesting and mistakes

    @Test("A waterfall that was continued by `then` can be neither started nor continued again; the longer one runs")
    func consumed() async {
        let shorter = Waterfall<Int, Int>(name: "shorter")
        let waterfall = shorter.then { $0 + 1 }
        let other = shorter.then { $0 + 2 }
        for operation in [shorter, other] {
            operation.input = 1
            await Start.byHand(operation)
            #expect(operation.error as? ChainError == .consumed(chain: "shorter"))
        }
        waterfall.input = 1
        await Start.byHand(waterfall)
        #expect(waterfall.output == 2)
    }

    @Test("A job that returns its own waterfall is an error with its name") func returnsItself() async {
        let holder = Shared<Waterfall<Int, Int>?>(nil)
        let waterfall = Waterfall<Int, Int>(name: "loop").thenRun { _ -> IOOperation<Int, Int> in holder.value! }
        holder.value = waterfall
        waterfall.input = 1
        await Start.byHand(waterfall)
        holder.value = nil
        #expect(waterfall.error?.localizedDescription.contains("“loop”") == true)
    }

    // MARK: Size

    @Test("The jobs of a very long waterfall run one at a time and overflow no stack") func manyJobs() async {
        let most = Shared((alive: 0, most: 0))
        let jobs = TestExtent.choose(20_000, long: 1_000_000)
        await onThread(stackSize: workerStackSize) {
            final class Token: Sendable {
                let counts: Shared<(alive: Int, most: Int)>
                init(_ counts: Shared<(alive: Int, most: Int)>) {
                    self.counts = counts
                    counts.change { $0 = ($0.alive + 1, max($0.most, $0.alive + 1)) }
                }
                deinit { counts.change { $0.alive -= 1 } }
            }
            let job: @Sendable (Int) throws -> Int = { input in
                let token = Token(most)
                return withExtendedLifetime(token) { input + 1 }
            }
            var waterfall = Waterfall<Int, Int>()
            for _ in 0..<jobs { waterfall = waterfall.then(job) }
            waterfall.input = 0
            waterfall.start()
            waterfall.waitUntilFinished()
            #expect(waterfall.output == jobs)
        }
        #expect(most.value.most == 1 && most.value.alive == 0)
    }

    @Test("The operations of jobs are created when their turn comes and released when they have ended")
    func operations() async {
        let tracker = LeakTracker()
        let most = Shared(0)
        let steps = TestExtent.choose(2_000, long: 20_000)
        await onThread(stackSize: workerStackSize) {
            let waterfall = (0..<steps).reduce(Waterfall<Int, Int>()) { waterfall, number in
                waterfall.thenRun { input in
                    if number % 100 == 0 { most.change { $0 = max($0, tracker.alive.count) } }
                    let step = Step<Int, Int>.increment("step").with(input: input)
                    return number % 100 < 50 ? tracker.track(step) : step
                }
            }
            waterfall.input = 0
            waterfall.start()
            waterfall.waitUntilFinished()
            #expect(waterfall.output == steps)
        }
        #expect(most.value <= 3, "\(most.value) are alive")
        await tracker.expectAllReleased()
    }
}
