import OperationKitTestSupport

@testable import OperationKit

@Suite("Retries", .hangGuard) struct RetryTests {
    enum Kind: CaseIterable { case operations, closure }

    private struct Busy: RetryAfterProviding {
        let retryAfter: Duration?
    }

    private let clock = ManualClock()
    private let log = EventLog()

    /// Delays of one second, two, four and so on.
    private func policy(_ maximumAttempts: Int = 5, _ change: (inout RetryPolicy) -> Void = { _ in }) -> RetryPolicy {
        var policy = RetryPolicy(maximumAttempts: maximumAttempts, backoff: .exponential(.seconds(1)), jitter: .none)
        change(&policy)
        return policy
    }

    /// An operation whose attempts do this with their number, and get its input.
    private func retry(
        _ kind: Kind, _ policy: RetryPolicy, _ work: @escaping @Sendable (Int) async throws -> Int
    ) -> IOOperation<String, Int> {
        let (log, count) = (log, Shared(0))
        let attempt: @Sendable (String) async throws -> Int = { input in
            let number = count.increment()
            log.add("attempt \(number)")
            #expect(input == "input")
            return try await work(number)
        }
        let retry: IOOperation<String, Int> =
            switch kind {
            case .operations: RetryOperation(policy, name: "load") { _ in IOTaskOperation(attempt) }
            case .closure: IOTaskOperation(name: "load", retry: policy, attempt)
            }
        retry.clock = clock
        return retry.with(input: "input")
    }

    /// One whose attempts fail with these errors, and then succeed with their number.
    private func retry(_ kind: Kind, _ policy: RetryPolicy, errors: [any Error]) -> IOOperation<String, Int> {
        retry(kind, policy) { number in
            if number <= errors.count { throw errors[number - 1] }
            return number
        }
    }

    @Test("An attempt without a clock takes that of the whole, another one keeps its own") func clocks() async throws {
        let (own, made) = (ManualClock(), Shared<[AsyncOperation]>([]))
        let make: @Sendable (Int) throws -> IOOperation<Void, Int> = { _ in
            let attempt = TaskOperation { 1 }
            if made.value.isEmpty { attempt.clock = own }
            made.change { $0.append(attempt) }
            return attempt
        }
        let wholes = [
            RetryOperation(policy(), makeOperation: make), RetryOperation(policy(), makeOperation: make),
            HedgedOperation(after: .seconds(1), makeOperation: make),
        ]
        for whole in wholes {
            whole.clock = clock
            try await OperationQueue().run(whole)
        }
        #expect(made.value.map { $0.clock as? ManualClock === own } == [true, false, false])
        #expect(made.value.dropFirst().allSatisfy { $0.clock as? ManualClock === clock })
    }

    @Test("What fails is tried again after the delays of the policy", arguments: Kind.allCases)
    func delays(kind: Kind) async throws {
        let retry = retry(kind, policy(), errors: [TestError.first, TestError.second, TestError.first])
        retry.start()
        for (number, second) in [1, 2, 4].enumerated() {
            await clock.sleepers()
            #expect(log.events.count == number + 1 && clock.deadlines == [clock.now.offset + .seconds(second)])
            clock.advance(by: .seconds(second))
        }
        #expect(try await retry.value == 4)
        guard let attempts = (retry as? RetryOperation<String, Int>)?.attempts else { return }
        #expect(attempts.map(\.start) == [.zero, .seconds(1), .seconds(3), .seconds(7)])
        #expect(attempts.map { text($0.error) } == ["first", "second", "first", "success"])
        #expect(attempts.map(\.duration) == [.zero, .zero, .zero, .zero])
    }

    @Test(
        "It ends with the error of the last attempt, after which the policy is not asked, and no delay passes the total time",
        arguments: Kind.allCases, [(1, nil), (3, nil), (9, 5)])
    func allFail(kind: Kind, maximum: (attempts: Int, seconds: Int?)) async {
        let (asked, count) = (EventLog(), min(maximum.attempts, 3))
        let policy = policy(maximum.attempts) {
            $0.maximumTotalTime = maximum.seconds.map { .seconds($0) }
            $0.shouldRetry = { error, attempt in
                asked.add("\(error) after \(attempt)")
                return true
            }
        }
        let retry = retry(kind, policy, errors: (1...9).map { TestError.numbered($0) })
        retry.start()
        for second in [1, 2].prefix(count - 1) { await clock.pass(.seconds(second)) }
        await #expect(throws: TestError.numbered(count)) { try await retry.value }
        #expect(asked.events == (1...count).filter { $0 < maximum.attempts }.map { "numbered(\($0)) after \($0)" })
        #expect(log.events.count == count && clock.deadlines.isEmpty)
    }

    @Test("An error asks for its own delay, also from inside other errors", arguments: Kind.allCases)
    func requestedDelay(kind: Kind) async throws {
        let busy = { Busy(retryAfter: .seconds($0)) }
        let compound = CompoundOperationError.suboperationFailure(
            name: "both",
            errors: [7, 9, 8].enumerated().map { SuboperationError(name: "child", index: $0, error: busy($1)) })
        let retry = retry(kind, policy(), errors: [busy(30), Busy(retryAfter: nil), busy(-1), compound])
        retry.start()
        for second in [30, 2, 9] {
            await clock.sleepers()
            #expect(clock.deadlines == [clock.now.offset + .seconds(second)])
            clock.advance(by: .seconds(second))
        }
        #expect(try await retry.value == 5)
        #expect(clock.now.offset == .seconds(41))
    }

    @Test("An attempt that takes too long has failed, unless it succeeds nevertheless", arguments: Kind.allCases)
    func attemptTimeout(kind: Kind) async throws {
        let policy = policy(3) { $0.attemptTimeout = .seconds(10) }
        let retry = retry(kind, policy) { number in
            do { try await cancellation() } catch { if number < 3 { throw error } }
            return number
        }
        retry.start()
        for (attempt, delay) in [(1, 1), (2, 2), (3, 0)] {
            // Time may be over for one that has not begun, which never does then.
            await eventually("attempt \(attempt) has not begun") { log.events.contains("attempt \(attempt)") }
            await clock.pass(.seconds(10))
            if delay > 0 { await clock.pass(.seconds(delay)) }
        }
        #expect(try await retry.value == 3)
        let name = kind == .closure ? "load" : "load, attempt 1"
        for own: (any Error)? in [nil, TestError.first] {
            let begun = Gate()
            let last = self.retry(kind, self.policy(1) { $0.attemptTimeout = .seconds(10) }) { _ in
                begun.open()
                do { try await cancellation() } catch { throw own ?? error }
            }
            last.start()
            await begun.opened()
            await clock.pass(.seconds(10))
            try? await last.waitForFinish()
            #expect(text(last.error) == text(own ?? OperationTimeoutError(operation: name, timeout: .seconds(10))))
        }
        await clock.expectNoSleepers()
    }

    @Test("Of the timeouts of an attempt and of the policy the shorter one counts", arguments: [2, 20])
    func shorterTimeout(own: Int) async {
        let retry = RetryOperation<Void, Void>(policy(1) { $0.attemptTimeout = .seconds(10) }) { [clock] _ in
            let attempt = TaskOperation(name: "attempt") { try await cancellation() }
            attempt.clock = clock
            attempt.timeout = .seconds(own)
            return attempt
        }
        retry.start()
        let timeout = Duration.seconds(min(own, 10))
        await clock.pass(timeout)
        let error = OperationTimeoutError(operation: "attempt", timeout: timeout)
        await #expect(throws: error) { try await retry.finished() }
    }

    @Test("Neither a cancellation nor an error that the policy does not want is tried again", arguments: Kind.allCases)
    func notRetried(kind: Kind) async {
        let asked = Shared(0)
        let policy = policy {
            $0.attemptTimeout = .seconds(10)
            $0.shouldRetry = { _, _ in asked.increment() > 1 }
        }
        for error in [CancellationError(), URLError(.cancelled), TestError.second] as [any Error] {
            let retry = retry(kind, policy, errors: [error])
            await Start.byHand(retry)
            #expect(retry.error.map { type(of: $0) == type(of: error) } == true)
        }
        #expect(log.events == Array(repeating: "attempt 1", count: 3) && asked.value == 1)
    }

    @Test("Cancelling or finishing it during a delay ends it immediately", arguments: Kind.allCases, [false, true])
    func endedInDelay(kind: Kind, isCancelled: Bool) async {
        let retry = retry(kind, policy(), errors: [TestError.first])
        retry.start()
        await clock.sleepers()
        #expect(
            retry.debugDescription.contains(kind == .closure ? "1 s before attempt 2" : "attempt 2 of 5 begins in 1 s"))
        if isCancelled { retry.cancel(withError: TestError.reason) } else { retry.finish(withError: TestError.reason) }
        await #expect(throws: TestError.reason) { try await retry.value }
        await clock.expectNoSleepers()
        #expect(log.events == ["attempt 1"])
    }

    @Test("The failure of an attempt stands if the operation is cancelled", arguments: Kind.allCases, [false, true])
    func cancelledAtWork(kind: Kind, whenAsked: Bool) async {
        let (log, working, question) = (log, Gate(), HeldWork())
        let policy = policy {
            $0.shouldRetry = { _, _ in
                log.add("asked")
                question()
                return true
            }
        }
        let retry = retry(kind, policy) { _ in
            working.open()
            if !whenAsked { try? await cancellation() }
            throw TestError.first
        }
        retry.start()
        await (whenAsked ? question.begun : working).opened()
        retry.cancel()
        question.mayEnd.open()
        await #expect(throws: TestError.first) { try await retry.value }
        #expect(log.events == (whenAsked ? ["attempt 1", "asked"] : ["attempt 1"]))
    }

    /// A policy with delays of one second, and with a budget for so many retries in 100 seconds.
    private func policy(retries: Int) -> RetryPolicy {
        policy {
            $0.backoff = .constant(.seconds(1))
            $0.budget = RetryBudget(fraction: 0, minimumRetries: retries, per: .seconds(100), clock: clock)
        }
    }

    @Test("A retry counts when it begins, and one over the budget ends with the last error", arguments: Kind.allCases)
    func budget(kind: Kind) async {
        let policy = policy(retries: 3)
        let operations = (0..<15).map { _ in retry(kind, policy, errors: [TestError.first]) }
        for operation in operations { operation.start() }
        await eventually("an attempt has not ended") {
            clock.timer.state.withLock { $0.machine.deadlines.count } == 15
        }
        #expect(operations.allSatisfy { !$0.isFinished })
        // What is cancelled meanwhile takes nothing from it.
        for operation in operations.prefix(5) { operation.cancel() }
        await clock.pass(.seconds(1))
        for operation in operations { _ = try? await operation.finished() }
        let ends = operations.dropFirst(5).map { $0.output.map { "\($0)" } ?? brief($0.error) }
        #expect(ends.sorted() == ["2", "2", "2"] + Array(repeating: "load, 1 attempts: first", count: 7))
    }

    @Test("A budget is not taken in vain, and ends retries where it is exhausted", arguments: Kind.allCases)
    func budgetInVain(kind: Kind) async throws {
        let withBudget = policy(retries: 1)
        let inVain: [(change: (inout RetryPolicy) -> Void, end: String)] = [
            ({ $0.maximumAttempts = 1 }, "first"), ({ $0.maximumTotalTime = .milliseconds(1) }, "first"),
            ({ $0.shouldRetry = { _, _ in false } }, "first"), ({ $0.backoff = .none }, "cancelled"),
        ]
        for (change, end) in inVain {
            var policy = withBudget
            change(&policy)
            let retry = retry(kind, policy, errors: [TestError.first])
            retry.addObserver(
                EventRecorder { operation, event in if case .retrying = event.kind { operation.cancel() } })
            retry.start()
            try? await retry.waitForFinish()
            #expect(text(retry.error) == end)
        }
        let retry = retry(kind, withBudget, errors: [TestError.first])
        retry.start()
        await clock.pass(.seconds(1))
        #expect(try await retry.value == 2)
        // Now that it is exhausted, a failure is followed by no delay.
        let over = self.retry(kind, withBudget, errors: [TestError.first])
        await Start.byHand(over)
        #expect(brief(over.error) == "load, 1 attempts: first" && clock.deadlines.isEmpty)
    }

    @Test("A retry is announced when its delay has begun, as far as its budget goes", arguments: Kind.allCases)
    func announced(kind: Kind) async throws {
        let policy = policy { $0.budget = RetryBudget(fraction: 1, minimumRetries: 0, clock: clock) }
        let retry = retry(kind, policy, errors: [TestError.first])
        retry.addObserver(
            EventRecorder { [clock] _, event in
                if case .retrying(_, _, let delay) = event.kind { clock.advance(by: delay) }
            })
        retry.start()
        #expect(try await retry.value == 2 && clock.now == .init(offset: .seconds(1)))
    }

    @Test("A queue calls a closure again, or runs another operation, in one place", arguments: Kind.allCases)
    func queue(kind: Kind) async throws {
        let queue = OperationQueue.serial(name: "uploads")
        let (clock, policy, count) = (clock, policy(), Shared(0))
        let attempt: @Sendable () throws -> Int = {
            if count.increment() == 1 { throw TestError.first }
            return count.value
        }
        let first = Task {
            switch kind {
            case .closure: try await queue.run(name: "load", retry: policy, clock: clock) { try attempt() }
            case .operations:
                try await queue.run(name: "load", retry: policy, clock: clock) { _ in TaskOperation { try attempt() } }
            }
        }
        await clock.sleepers()
        let second = Task { try await queue.run(name: "second") { 0 } }
        await eventually("the second is not added") { queue.operationCount == 2 }
        #expect(queue.operations.map { $0.isExecuting ? $0.name : nil } == ["load", nil])
        clock.advance(by: .seconds(1))
        #expect(try await first.value == 2)
        #expect(try await second.value == 0)
    }
}
