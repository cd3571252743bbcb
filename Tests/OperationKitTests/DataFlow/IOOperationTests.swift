import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// What a typed operation adds to the life cycle: what goes in, what comes out, and what is missing.
@Suite("IOOperation", .hangGuard) struct IOOperationTests {
    private final class Measure: IOOperation<String, Int>, @unchecked Sendable {
        override func main(input: String) { finish(with: input.count) }
    }

    /// Hands its input to a closure.
    private final class Step<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
        private let work: @Sendable (Step, Input) -> Void

        init(_ work: @escaping @Sendable (Step, Input) -> Void) {
            self.work = work
            super.init()
        }

        override func main(input: Input) { work(self, input) }
    }

    @Test("The output can be read after the end, as `output`, `result` and `value`", arguments: Start.allCases)
    func output(start: Start) async throws {
        let measure = Measure()
        measure.input = "four"
        #expect(measure.output == nil && measure.result == nil)
        await start(measure)
        #expect(measure.output == 4)
        #expect(try measure.result?.get() == 4)
        #expect(measure.error == nil)
        #expect(try await measure.value == 4)
    }

    @Test("A missing input is an error with the name of the operation", arguments: Start.allCases)
    func missingInput(start: Start) async {
        let measure = Measure()
        measure.name = "measure"
        await start(measure)
        #expect(measure.error as? IOOperationError == .missingInput(operation: "measure"))
        #expect(measure.output == nil)
        #expect(throws: IOOperationError.missingInput(operation: "measure")) { try measure.result?.get() }
        await #expect(throws: IOOperationError.missingInput(operation: "measure")) { try await measure.value }
    }

    @Test("A success without an output is an error with the name of the operation", arguments: Start.allCases)
    func missingOutput(start: Start) async {
        let forgetful = Step<Int, Int> { step, _ in step.finish() }
        forgetful.name = "forgetful"
        forgetful.input = 1
        await start(forgetful)
        #expect(forgetful.error as? IOOperationError == .missingOutput(operation: "forgetful"))
        #expect(forgetful.output == nil)
    }

    @Test("A success without an output is an error also where the output is optional")
    func missingOptionalOutput() async {
        let forgetful = Step<Int, Int?> { step, _ in step.finish() }
        forgetful.name = "forgetful"
        forgetful.input = 1
        await Start.byHand(forgetful)
        #expect(forgetful.error as? IOOperationError == .missingOutput(operation: "forgetful"))
    }

    @Test("An operation that does not override `main(input:)` ends with the error of a missing output")
    func notOverridden() async {
        let plain = IOOperation<Int, Int>()
        plain.name = "plain"
        plain.input = 1
        await Start.byHand(plain)
        #expect(plain.error as? IOOperationError == .missingOutput(operation: "plain"))
    }

    @Test("`Void` needs neither an input nor an output", arguments: Start.allCases)
    func void(start: Start) async throws {
        let log = EventLog()
        let step = Step<Void, Void> { step, _ in
            log.add("main")
            step.finish()
        }
        await start(step)
        #expect(log.events == ["main"])
        #expect(step.error == nil)
        #expect(step.output != nil)
        try await step.value
    }

    @Test("An optional input may be `nil`") func nilInput() async {
        let step = Step<Int?, String> { $0.finish(with: "\(String(describing: $1))") }
        step.input = .some(nil)
        await Start.byHand(step)
        #expect(step.output == "nil")
    }

    @Test("An optional input that is not set is missing") func unsetOptionalInput() async {
        let step = Step<Int?, Int> { $0.finish(with: $1 ?? 0) }
        step.name = "step"
        await Start.byHand(step)
        #expect(step.error as? IOOperationError == .missingInput(operation: "step"))
    }

    @Test("An input of type `any Sendable` that is not set is missing") func unsetAnyInput() async {
        let step = Step<any Sendable, Int> { step, _ in step.finish(with: 1) }
        step.name = "step"
        await Start.byHand(step)
        #expect(step.error as? IOOperationError == .missingInput(operation: "step"))
    }

    @Test("An optional output may be `nil`") func nilOutput() async throws {
        let step = Step<Int, Int?> { step, _ in step.finish(with: nil) }
        step.input = 1
        await Start.byHand(step)
        #expect(step.error == nil)
        #expect(step.output == .some(.none))
        #expect(try await step.value == nil)
    }

    @Test("The output can be read in `asyncCompletionBlock` and by dependents", arguments: Start.allCases)
    func readers(start: Start) async {
        let log = EventLog()
        let measure = Measure()
        measure.input = "four"
        measure.asyncCompletionBlock = { [unowned measure] _ in log.add("asyncCompletionBlock \(measure.output ?? -1)")
        }
        let dependent = BlockOperation { log.add("dependent \(measure.output ?? -1)") }
        dependent.addDependency(measure)
        let queue = OperationQueue()
        queue.addOperation(dependent)
        await start(measure)
        await onThread { dependent.waitUntilFinished() }
        #expect(log.events == ["asyncCompletionBlock 4", "dependent 4"])
    }

    @Test("The input that is set last before the start counts") func lastInput() async {
        let measure = Measure()
        measure.input = "a"
        measure.input = "bc"
        #expect(measure.input == "bc")
        await Start.byHand(measure)
        measure.input = "def"
        #expect(measure.output == 2)
    }

    @Test("The first `finish` decides, with its output") func firstFinish() async {
        let answers = EventLog()
        let step = Step<Int, Int> { step, _ in
            answers.add("\(step.finish(with: 1))")
            answers.add("\(step.finish(with: 2))")
            answers.add("\(step.finish(withError: TestError.first))")
        }
        step.input = 0
        await Start.byHand(step)
        #expect(answers.events == ["true", "false", "false"])
        #expect(step.output == 1 && step.error == nil)
    }

    @Test("An operation that has failed has no output, although `finish(with:)` is called later")
    func errorFirst() async {
        let step = Step<Int, Int> { step, _ in
            step.finish(withError: TestError.first)
            step.finish(with: 2)
        }
        step.input = 0
        await Start.byHand(step)
        #expect(step.output == nil && text(step.error) == "first")
    }

    @Test(
        "An output that is given before the start is the outcome, and `main(input:)` is not called",
        arguments: Start.allCases
    )
    func outputBeforeTheStart(start: Start) async {
        let log = EventLog()
        let step = Step<Int, Int> { _, _ in log.add("main") }
        await start(step) {
            log.add("\(step.finish(with: 1)), \(step.output == nil)")
        }
        #expect(log.events == ["true, true"])
        #expect(step.output == 1 && step.error == nil)
    }

    @Test(
        "An operation that is cancelled before its start misses no input: it ends with the reason",
        arguments: Start.allCases
    )
    func cancelledBeforeTheStart(start: Start) async {
        let measure = Measure()
        await start(measure) { measure.cancel(withError: TestError.reason) }
        #expect(text(measure.error) == "reason")
        #expect(measure.output == nil)
        await #expect(throws: TestError.reason) { try await measure.value }
    }

    @Test("An output that cancelled work gives is the outcome") func outputAfterCancellation() async {
        let step = Step<Int, Int> { _, _ in }
        step.input = 0
        await onThread {
            step.start()
            step.cancel()
            step.finish(with: 3)
        }
        #expect(step.isCancelled && step.output == 3 && step.error == nil)
    }

    @Test("Of several threads that finish an operation one gives the outcome") func concurrentFinish() async {
        let wrong = EventLog()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 2_000, seed: seed,
            prepare: { _ -> Step<Int, Int> in
                let step = Step<Int, Int> { _, _ in }
                step.input = 0
                step.start()
                return step
            },
            [
                { @Sendable in $0.finish(with: 1) },
                { @Sendable in $0.finish(withError: TestError.first) },
                { @Sendable in $0.finish(with: 2) },
            ],
            check: { step, round in
                let isRight = step.error == nil ? [1, 2].contains(step.output) : step.output == nil
                if !isRight || step.result == nil { wrong.add("round \(round): \(String(describing: step.result))") }
            })
        #expect(wrong.events.isEmpty, "seed \(seed)")
    }

    @Test("An operation, its input and its output are released after the end") func releases() async {
        let tracker = LeakTracker()
        do {
            let step = tracker.track(
                Step<LeakTracker.Token, LeakTracker.Token> { step, input in
                    input.use()
                    step.finish(with: tracker.token("output"))
                })
            step.input = tracker.token("input")
            await Start.onSuspendedQueue(step)
            #expect(step.output != nil)
        }
        await tracker.expectAllReleased()
    }
}
