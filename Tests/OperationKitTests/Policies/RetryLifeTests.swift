import Foundation
import OperationKitTestSupport

@testable import OperationKit

@Suite("Ends of retried operations", .hangGuard) struct RetryLifeTests {
    private let clock = ManualClock()
    private let log = EventLog()

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

    @Test("One whose delay is over while what is around it is being cancelled ends when it is cancelled, too")
    func stopped() async {
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

    @Test("Attempts get the input, and a name with the end of that of the operation, unless they have their own")
    func inputAndName() async throws {
        let (log, name) = (log, String(repeating: "n", count: 500) + "end")
        let retry = RetryOperation<String, String>(policy, name: name) { number in
            let attempt = IOBlockOperation<String, String>(name: number == 1 ? "mine" : nil) { text in
                if text == "own" { throw TestError.first }
                return text
            }
            attempt.addObserver(
                EventRecorder { operation, event in if event.isRunning { log.add(operation.name ?? "") } })
            return number == 1 ? attempt.with(input: "own") : attempt
        }
        retry.clock = clock
        retry.input = "given"
        retry.start()
        await clock.pass(.seconds(1))
        #expect(try await retry.value == "given" && log.events.count == 2 && log.events[0] == "mine")
        #expect(log.events[1].count < 130 && log.events[1].hasSuffix("end, attempt 2"))
    }

    @Test("Of very many attempts the last thousand are known, and nothing else is kept")
    func manyAttempts() async throws {
        let (count, alive) = (TestExtent.choose(2_001, long: 100_000), TokenCount())
        let endless = RetryPolicy(maximumAttempts: .max, backoff: .none)
        let retry = retry(endless) { number in
            let token = alive.token()
            return ScriptedOperation {
                token.use()
                $0.finish(withError: number < count ? TestError.numbered(number) : nil)
            }
        }
        retry.start()
        try await retry.finished()
        #expect(retry.attempts.map(\.number) == Array(count - 999...count) && retry.attemptCount == count)
        #expect(retry.slotCount < 8 && alive.most < 100)
    }

    @Test("Its own timeout counts from the first attempt to the last") func ownTimeout() async {
        let retry = retry { _ in ScriptedOperation { $0.finish(withError: TestError.first) } }
        retry.timeout = .milliseconds(1_500)
        retry.start()
        await eventually("there is no delay") { clock.deadlines == [.seconds(1)] }
        clock.advance(by: .seconds(1))
        await eventually("there is no second attempt") {
            retry.attempts.last?.number == 2 && retry.attempts.last?.duration != nil
        }
        await eventually("there is no timeout") { clock.deadlines == [.milliseconds(1_500)] }
        clock.advance(by: .milliseconds(500))
        await #expect(throws: OperationTimeoutError(operation: "load", timeout: .milliseconds(1_500))) {
            try await retry.finished()
        }
        #expect(retry.attempts.count == 2)
        await clock.expectNoSleepers()
    }

    @Test("The description tells which attempt runs, or when it begins") func description() async throws {
        let (begun, release) = (Gate(), Shared<ScriptedOperation?>(nil))
        let retry = retry { number in
            ScriptedOperation {
                if number == 1 { return _ = $0.finish(withError: TestError.first) }
                release.value = $0
                begun.open()
            }
        }
        retry.start()
        await clock.sleepers()
        #expect(retry.debugDescription.contains("attempt 2 of 3 begins in 1 s"))
        #expect(!retry.debugDescription.contains("attempt 1") && !retry.debugDescription.contains("\n"))
        clock.advance(by: .seconds(1))
        await begun.opened()
        #expect(retry.attempts.map(\.duration) == [.zero, nil])
        let lines = retry.debugDescription.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("“load”: executing"))
        #expect(lines[0].hasSuffix(", attempt 2 of 3") && lines[1].hasPrefix("  “load, attempt 2”: executing"))
        release.value?.finish()
        release.value = nil
        try await retry.finished()
    }

    @Test("Its progress is that of the attempt that came farthest, and never falls") func progress() async throws {
        let fractions = Shared<[Double]>([])
        let progress = Shared<Progress?>(nil)
        let retry = retry { number in
            ScriptedOperation {
                $0.progress.totalUnitCount = 10
                for units in [2, 4, 6] {
                    $0.progress.completedUnitCount = Int64(units - (number == 1 ? 0 : 1))
                    fractions.change { $0.append(progress.value?.fractionCompleted ?? -1) }
                }
                $0.finish(withError: number == 1 ? TestError.first : nil)
            }
        }
        progress.value = retry.progress
        retry.start()
        await clock.sleepers()
        #expect(retry.progress.fractionCompleted == 0.6)
        clock.advance(by: .seconds(1))
        try await retry.finished()
        #expect(fractions.value == [0.2, 0.4, 0.6, 0.6, 0.6, 0.6] && retry.progress.fractionCompleted == 1)
    }

    private let immediately = RetryPolicy(maximumAttempts: 3, backoff: .none)

    @Test("A policy that makes no sense ends the operation with an error that says so, and nothing is made")
    func invalidPolicies() async {
        let log = EventLog()
        let make: @Sendable (Int) -> IOOperation<Void, Int> = { _ in
            log.add("made")
            return TaskOperation { 1 }
        }
        let (none, negative) = (RetryPolicy(maximumAttempts: 0), RetryPolicy(backoff: .constant(.seconds(-1))))
        let operations: [(AsyncOperation, String)] = [
            (RetryOperation(none, makeOperation: make), "its maximumAttempts is 0"),
            (RetryOperation(negative, makeOperation: make), "its backoff begins with a delay of -1.0 seconds"),
            (TaskOperation(retry: RetryPolicy(maximumAttempts: -1)) { 1 }, "its maximumAttempts is -1"),
            (MapOperation<Int, Void>(retry: none) { _ in log.add("ran") }.with(input: [1]), "its maximumAttempts is 0"),
            (RepeatOperation(every: .zero, makeOperation: make), "its interval is 0.0 seconds"),
            (RepeatOperation(every: .seconds(1), maximumCount: -1, makeOperation: make), "its maximumCount is -1"),
            (HedgedOperation(after: .seconds(-1), makeOperation: make), "its delay is -1.0 seconds"),
            (HedgedOperation(after: .zero, maximumAttempts: 0, makeOperation: make), "its maximumAttempts is 0"),
        ]
        for (operation, problem) in operations {
            operation.name = "load"
            operation.start()
            await #expect(throws: RetryError.self) { try await operation.finished() }
            let sentence = "The operation “load” did not run, because of its policy: \(problem)."
            #expect(operation.error?.localizedDescription == sentence)
        }
        #expect(log.events.isEmpty)
    }

    @Test("A closure that returns the operation of an earlier attempt is an error") func sameAgain() async {
        let attempt = ScriptedOperation { $0.finish(withError: TestError.first) }
        let retry = RetryOperation(immediately, name: "load") { _ in attempt }
        await Start.byHand(retry)
        #expect(retry.error?.localizedDescription.hasPrefix("Call 2 of the closure of “load” returned") == true)
        #expect(retry.attempts.count <= 2)
    }

    @Test("A closure that returns its own operation, or one that this is inside of, is an error with the names")
    func around() async throws {
        let reference = Shared<AsyncOperation?>(nil)
        let make: @Sendable (Int) -> AsyncOperation = { _ in reference.value ?? ScriptedOperation() }
        let alone = RetryOperation(immediately, name: "load", makeOperation: make)
        reference.value = alone
        await Start.byHand(alone)
        #expect(alone.error?.localizedDescription == "“load” would wait for itself.")
        let retry = RetryOperation(immediately, name: "load", makeOperation: make)
        let compound = CompoundOperation(name: "sync", operations: [retry])
        reference.value = compound
        compound.start()
        try? await compound.finished()
        #expect(cyclePath(of: retry.error) == ["load", "load", "sync"])
        // An attempt that is refused has failed.
        let refusing = RetryOperation(immediately, name: "load") { _ in
            let attempt = ScriptedOperation("attempt")
            if let retry = reference.value { attempt.addDependency(retry) }
            return attempt
        }
        reference.value = refusing
        await Start.byHand(refusing)
        reference.value = nil
        #expect(cyclePath(of: refusing.error)?.count == 3 && refusing.attempts.count == 1)
        #expect(cyclePath(of: refusing.attempts.last?.error) == cyclePath(of: refusing.error))
        #expect(refusing.attempts.last?.duration != nil)
    }

    @Test("An attempt that waits for its hedged operation ends that with an error, and cancels the attempts that run")
    func waitsForHedged() async {
        let (clock, itself) = (ManualClock(), Shared<AsyncOperation?>(nil))
        let first = ScriptedOperation("first", main: { _ in }, didCancel: { $0.finish(withError: TestError.first) })
        let hedged = HedgedOperation(after: .seconds(1), name: "page") { attempt in
            if attempt == 1 { return first }
            let second = ScriptedOperation("second")
            if let hedged = itself.value { second.addDependency(hedged) }
            return second
        }
        itself.value = hedged
        hedged.clock = clock
        hedged.start()
        await clock.pass(.seconds(1))
        await eventually("not cancelled: \(hedged.debugDescription)") { first.isFinished }
        try? await hedged.waitForFinish()
        itself.value = nil
        #expect(cyclePath(of: hedged.error) == ["page", "second", "page"])
    }
}
