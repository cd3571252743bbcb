import OperationKitTestSupport

@testable import OperationKit

@Suite("Ends of retried operations", .hangGuard) struct RetryLifeTests {
    private let clock = ManualClock()
    private let log = EventLog()
    private let leaks = LeakTracker()

    /// Three attempts with a second in between.
    private var policy: RetryPolicy { RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(1)), jitter: .none) }

    /// An operation whose attempts are these.
    private func retry(
        _ policy: RetryPolicy? = nil, _ make: @escaping @Sendable (Int) throws -> AsyncOperation
    ) -> RetryOperation<Void, Void> {
        let retry = RetryOperation(policy ?? self.policy, name: "load", makeOperation: make)
        retry.clock = clock
        return leaks.track(retry)
    }

    private func expectNothingLeft() async {
        await clock.expectNoSleepers()
        await leaks.expectAllReleased()
    }

    // MARK: - Cancelling

    /// What a closure makes attempts or runs of.
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

    @Test(
        "Cancelling while the closure makes an operation keeps that from running, after a failure, too",
        arguments: Kind.allCases, [1, 2])
    func cancelledWhileMaking(kind: Kind, attempt: Int) async {
        do {
            let (log, leaks, making, cancelled) = (log, leaks, Gate(), Gate())
            let operation = leaks.track(
                kind.make { number in
                    if number < attempt { return ScriptedOperation { $0.finish(withError: TestError.first) } }
                    making.open()
                    cancelled.pass()
                    return leaks.track(ScriptedOperation { _ in log.add("ran") })
                })
            operation.clock = clock
            operation.start()
            if kind == .repetition, attempt == 2 { await clock.pass(.seconds(1)) }
            await making.opened()
            operation.cancel()
            cancelled.open()
            await #expect(throws: CancellationError.self) { try await operation.finished() }
            let attempts = (operation as? RetryOperation<Void, Void>)?.attempts
            #expect(log.events.isEmpty && attempts?.count ?? attempt - 1 == attempt - 1)
        }
        await expectNothingLeft()
    }

    // MARK: - Attempts

    @Test("The name of an attempt has only the end of a long name of the operation") func longName() async throws {
        let log = log
        let load = RetryOperation(policy, name: String(repeating: "n", count: 500) + "end") { _ in
            ScriptedOperation {
                log.add($0.name ?? "")
                $0.finish()
            }
        }
        load.start()
        try await load.finished()
        #expect(log.events.first?.count ?? 0 < 130 && log.events.first?.hasSuffix("end, attempt 1") == true)
    }

    @Test("Attempts get the input and a name, unless they have their own") func inputAndName() async throws {
        let log = log
        let retry = RetryOperation<String, String>(policy, name: "load") { number in
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
        #expect(try await retry.value == "given" && log.events == ["mine", "load, attempt 2"])
    }

    @Test("A compound that takes too long as an attempt has failed, with its timeout as the reason")
    func compoundTimeout() async {
        var policy = RetryPolicy(maximumAttempts: 1)
        policy.attemptTimeout = .seconds(10)
        let retry = retry(policy) { _ in
            CompoundOperation(operations: [ScriptedOperation.stoppable()])
        }
        retry.start()
        await clock.pass(.seconds(10))
        await #expect(throws: CompoundOperationError.self) { try await retry.finished() }
        guard case CompoundOperationError.cancelled(_, _, let reason)? = retry.error else {
            Issue.record("\(text(retry.error))")
            return
        }
        #expect(reason as? OperationTimeoutError == .init(operation: "load, attempt 1", timeout: .seconds(10)))
    }

    // MARK: - Nothing left behind

    @Test("Attempts are released when they have ended, and the rest at the end", arguments: [true, false])
    func released(succeeds: Bool) async {
        do {
            let (leaks, attempts) = (leaks, LeakTracker())
            let token = leaks.token("closure")
            let retry = retry { number in
                token.use()
                return attempts.track(
                    ScriptedOperation { $0.finish(withError: succeeds && number == 3 ? nil : TestError.first) })
            }
            retry.start()
            for _ in 1...2 {
                await clock.sleepers()
                await attempts.expectAllReleased()
                clock.advance(by: .seconds(1))
            }
            try? await retry.finished()
            #expect((retry.error == nil) == succeeds)
        }
        await expectNothingLeft()
    }

    @Test("Of very many attempts the last thousand are known, and nothing else is kept") func manyAttempts()
        async throws
    {
        let count = TestExtent.choose(2_001, long: 100_000)
        let endless = RetryPolicy(maximumAttempts: .max, backoff: .none)
        let retry = retry(endless) { number in
            ScriptedOperation { $0.finish(withError: number < count ? TestError.numbered(number) : nil) }
        }
        retry.start()
        try await retry.finished()
        #expect(retry.attempts.map(\.number) == Array(count - 999...count) && retry.attemptCount == count)
        #expect(retry.slotCount < 8)
    }

    // MARK: - In other operations

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

    // MARK: - Descriptions and progress

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
        #expect(!retry.debugDescription.contains("\n"))
        clock.advance(by: .seconds(1))
        await begun.opened()
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
}
