import Foundation
import OperationKitTestSupport

@testable import OperationKit

@Suite("Ends of retried operations", .hangGuard) struct RetryLifeTests {
    private let clock = ManualClock()
    private let log = EventLog()
    private let immediately = RetryPolicy(maximumAttempts: 3, backoff: .none)

    private var policy: RetryPolicy { RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(1)), jitter: .none) }

    private func retry(
        _ policy: RetryPolicy? = nil, _ make: @escaping @Sendable (Int) throws -> AsyncOperation
    ) -> RetryOperation<Void, Void> {
        let retry = RetryOperation(policy ?? self.policy, name: "load", makeOperation: make)
        retry.clock = clock
        return retry
    }

    enum Kind: CaseIterable {
        case retry, hedging, repetition

        func make(_ makeOperation: @escaping @Sendable (Int) throws -> AsyncOperation) -> AsyncOperation {
            switch self {
            case .retry: RetryOperation(RetryPolicy(backoff: .none), makeOperation: makeOperation)
            case .hedging: HedgedOperation(after: .seconds(100), makeOperation: makeOperation)
            case .repetition:
                RepeatOperation(every: .seconds(1), continuesAfterFailure: true, makeOperation: makeOperation)
            }
        }
    }

    @Test("A closure that throws ends the operation with its error", arguments: Kind.allCases, [1, 2])
    func throwingClosure(kind: Kind, attempt: Int) async {
        let operation = kind.make { number in
            if number == attempt { throw TestError.second }
            return ScriptedOperation { $0.finish(withError: TestError.first) }
        }
        operation.clock = clock
        operation.start()
        if kind == .repetition, attempt == 2 { await clock.pass(.seconds(1)) }
        await #expect(throws: TestError.second) { try await operation.finished() }
        #expect((operation as? RetryOperation<Void, Void>)?.attempts.count ?? attempt - 1 == attempt - 1)
    }

    @Test("A closure does not run on the thread of a dispatch queue, which it may wait for")
    func underlyingQueue() async {
        let (serial, queue) = (DispatchQueue(label: "serial"), OperationQueue())
        unsafe queue.underlyingQueue = serial
        let retry = retry { _ in serial.sync { ScriptedOperation { $0.finish() } } }
        queue.addOperation(retry)
        await #expect(throws: Never.self) { try await retry.finished() }
    }

    @Test("One whose delay ends while what is around it is being cancelled is cancelled, too") func stopped() async {
        let (log, clock, ended) = (log, clock, Gate())
        let retry = retry { _ in ScriptedOperation { $0.finish(withError: TestError.first) } }
        retry.asyncCompletionBlock = { [unowned retry] in
            log.add("\(text($0)) \(retry.isCancelled)")
            ended.open()
        }
        // Its turn to be cancelled comes first, when no child begins any more.
        let first = ScriptedOperation(main: { _ in }) {
            clock.advance(by: .seconds(1))
            ended.pass()
            $0.finish()
        }
        let compound = CompoundOperation(operations: [first, retry])
        await compound.start(until: first)
        await clock.sleepers()
        await onThread { compound.cancel() }
        try? await compound.finished()
        #expect(log.events == ["cancelled true"])
    }

    @Test("Attempts have a name with the end of that of the operation, unless they have their own") func names() async {
        let (log, name) = (log, String(repeating: "n", count: 500) + "end")
        let retry = RetryOperation(immediately, name: name) { number in
            ScriptedOperation(number == 1 ? "mine" : nil) {
                log.add($0.name ?? "")
                $0.finish(withError: number == 1 ? TestError.first : nil)
            }
        }
        await Start.byHand(retry)
        #expect(log.events.count == 2 && log.events[0] == "mine")
        #expect(log.events[1].count < 130 && log.events[1].hasSuffix("end, attempt 2"))
    }

    @Test("Of very many attempts the last thousand are known, and nothing else is kept", arguments: [false, true])
    func manyAttempts(isRepetition: Bool) async throws {
        struct Failure: Error { let token: Released }
        let (count, clock, alive) = (TestExtent.choose(2_001, long: 100_000), clock, TokenCount())
        let make: @Sendable (Int) -> ScriptedOperation = { number in
            let token = alive.token()
            return ScriptedOperation {
                // So the next run is due when this one ends.
                clock.advance(by: .seconds(10))
                let failure: any Error = isRepetition ? Failure(token: token) : TestError.first
                $0.finish(withError: number < count ? failure : nil)
            }
        }
        let retry = retry(RetryPolicy(maximumAttempts: .max, backoff: .none), make)
        let poll = RepeatOperation(
            every: .seconds(10), maximumCount: count, continuesAfterFailure: true, makeOperation: make)
        poll.clock = clock
        try await OperationQueue().run(isRepetition ? poll : retry)
        #expect((isRepetition ? poll.attemptCount : retry.attemptCount) == count)
        #expect(isRepetition || retry.attempts.map(\.number) == Array(count - 999...count))
        // Threads may be late to release theirs.
        #expect((isRepetition ? poll : retry).slotCount < 8 && alive.most < 100)
    }

    @Test("Its own timeout counts from the first attempt to the last") func ownTimeout() async {
        let retry = retry { _ in ScriptedOperation { $0.finish(withError: TestError.first) } }
        retry.timeout = .milliseconds(1_500)
        retry.start()
        await eventually("there is no delay") { clock.deadlines == [.seconds(1)] }
        clock.advance(by: .seconds(1))
        await eventually("there is no second attempt") { retry.attempts.count { $0.duration != nil } == 2 }
        await eventually("there is no timeout") { clock.deadlines == [.milliseconds(1_500)] }
        clock.advance(by: .milliseconds(500))
        await #expect(throws: OperationTimeoutError(operation: "load", timeout: .milliseconds(1_500))) {
            try await retry.finished()
        }
        await clock.expectNoSleepers()
    }

    @Test("The description tells which attempt runs, or when it begins") func description() async throws {
        let second = ScriptedOperation.idle()
        let retry = retry { $0 == 1 ? ScriptedOperation { $0.finish(withError: TestError.first) } : second }
        retry.start()
        await clock.sleepers()
        #expect(retry.debugDescription.hasSuffix("attempt 2 of 3 begins in 1 s"))
        #expect(!retry.debugDescription.contains("attempt 1"))
        clock.advance(by: .seconds(1))
        await eventually("not begun") { second.isAtWork }
        #expect(retry.attempts.map(\.duration) == [.zero, nil])
        let lines = retry.debugDescription.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("“load”: executing"))
        #expect(lines[0].hasSuffix(", attempt 2 of 3") && lines[1].hasPrefix("  “load, attempt 2”: executing"))
        second.finish()
        try await retry.finished()
    }

    @Test("Its progress is that of the attempt that came farthest, and never falls") func progress() async throws {
        let log = ProgressLog()
        let retry = RetryOperation(immediately) { number in
            ScriptedOperation {
                $0.progress.totalUnitCount = 10
                for units in [2, 4, 6] {
                    $0.progress.completedUnitCount = Int64(units - (number == 1 ? 0 : 1))
                    log.look()
                }
                $0.finish(withError: number == 1 ? TestError.first : nil)
            }
        }
        log.watch(retry)
        try await OperationQueue().run(retry)
        #expect(log.fractions == [0.2, 0.4, 0.6, 0.6, 0.6, 0.6] && retry.progress.fractionCompleted == 1)
    }

    @Test("A policy that makes no sense is an error, and nothing is made") func invalidPolicies() async {
        let make: @Sendable (Int) -> IOOperation<Void, Int> = { [log] _ in
            log.add("made")
            return TaskOperation { 1 }
        }
        let (none, negative) = (RetryPolicy(maximumAttempts: 0), RetryPolicy(backoff: .constant(.seconds(-1))))
        let operations: [(AsyncOperation, String)] = [
            (RetryOperation(none, makeOperation: make), "its maximumAttempts is 0"),
            (RetryOperation(negative, makeOperation: make), "its backoff begins with a delay of -1.0 seconds"),
            (TaskOperation(retry: RetryPolicy(maximumAttempts: -1)) { 1 }, "its maximumAttempts is -1"),
            (
                MapOperation<Int, Void>(retry: none) { _ in try await cancellation() }.with(input: [1]),
                "its maximumAttempts is 0"
            ),
            (RepeatOperation(every: .zero, makeOperation: make), "its interval is 0.0 seconds"),
            (RepeatOperation(every: .seconds(1), maximumCount: -1, makeOperation: make), "its maximumCount is -1"),
            (HedgedOperation(after: .seconds(-1), makeOperation: make), "its delay is -1.0 seconds"),
            (HedgedOperation(after: .zero, maximumAttempts: 0, makeOperation: make), "its maximumAttempts is 0"),
        ]
        for (operation, problem) in operations {
            operation.name = "load"
            await Start.byHand(operation)
            let sentence = "The operation “load” did not run, because of its policy: \(problem)."
            #expect(operation.error is RetryError && operation.error?.localizedDescription == sentence)
        }
        #expect(log.events.isEmpty)
    }

    @Test("A closure that returns what can't be an attempt is an error with names") func unusable() async {
        let made = Shared<AsyncOperation?>(nil)
        func retry() -> RetryOperation<Void, Void> {
            RetryOperation(immediately, name: "load") { _ in made.value ?? ScriptedOperation() }
        }
        let (alone, inside, again) = (retry(), retry(), retry())
        made.value = alone
        await Start.byHand(alone)
        #expect(alone.error?.localizedDescription == "“load” would wait for itself.")
        let compound = CompoundOperation(name: "sync", operations: [inside])
        made.value = compound
        await Start.byHand(compound)
        #expect(cyclePath(of: inside.error) == ["load", "load", "sync"])
        made.value = ScriptedOperation { $0.finish(withError: TestError.first) }
        await Start.byHand(again)
        #expect(again.error?.localizedDescription.hasPrefix("Call 2 of the closure of “load” returned") == true)
        // An attempt that waits for the operation is refused, and has failed.
        let waiting = ScriptedOperation("attempt")
        let refusing = retry()
        waiting.addDependency(refusing)
        made.value = waiting
        await Start.byHand(refusing)
        #expect(cyclePath(of: refusing.error) == ["load", "attempt", "load"] && refusing.attempts.count == 1)
        #expect(cyclePath(of: refusing.attempts.last?.error)?.count == 3)
        #expect(refusing.attempts.last?.duration != nil)
        waiting.removeDependency(refusing)
    }

    @Test("An attempt that waits for its hedged operation ends that with an error, and cancels the attempts that run")
    func waitsForHedged() async {
        let first = ScriptedOperation("first", main: { _ in }, didCancel: { $0.finish(withError: TestError.first) })
        let second = ScriptedOperation("second")
        let hedged = HedgedOperation(after: .seconds(1), name: "page") { $0 == 1 ? first : second }
        second.addDependency(hedged)
        hedged.clock = clock
        hedged.start()
        await clock.pass(.seconds(1))
        await eventually("not cancelled: \(hedged.debugDescription)") { first.isFinished }
        try? await hedged.waitForFinish()
        #expect(cyclePath(of: hedged.error) == ["page", "second", "page"])
        second.removeDependency(hedged)
    }
}
