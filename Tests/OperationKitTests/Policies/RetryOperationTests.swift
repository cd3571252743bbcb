import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Retried operations", .hangGuard) struct RetryOperationTests {
    private let clock = ManualClock()
    private let log = EventLog()

    private struct Busy: RetryAfterProviding, Equatable {
        let retryAfter: Duration?
    }

    /// Delays of one second, two, four and so on.
    private func policy(_ maximumAttempts: Int = 5) -> RetryPolicy {
        RetryPolicy(maximumAttempts: maximumAttempts, backoff: .exponential(.seconds(1)), jitter: .none)
    }

    /// An operation whose attempts fail with these errors, and then succeed with their number.
    private func retry(
        _ policy: RetryPolicy, errors: [any Error], name: String? = "load"
    ) -> RetryOperation<Void, Int> {
        let log = log
        let retry = RetryOperation(policy, name: name) { attempt in
            IOBlockOperation<Void, Int> { _ in
                log.add("attempt \(attempt)")
                if attempt <= errors.count { throw errors[attempt - 1] }
                return attempt
            }
        }
        retry.clock = clock
        return retry
    }

    // MARK: - Attempts and delays

    @Test("An attempt that succeeds ends it with the output") func firstAttempt() async throws {
        let retry = retry(policy(), errors: [])
        #expect(try await OperationQueue().run(retry) == 1)
        #expect(retry.attempts.map(\.number) == [1] && retry.attempts[0].error == nil)
        #expect(clock.deadlines.isEmpty && log.events == ["attempt 1"])
    }

    @Test("What fails is tried again after the delays of the policy") func delays() async throws {
        let retry = retry(policy(), errors: [TestError.first, TestError.second, TestError.first])
        retry.start()
        for second in [1, 2, 4] { await clock.pass(.seconds(second)) }
        #expect(try await retry.value == 4)
        #expect(retry.attempts.map(\.start) == [.zero, .seconds(1), .seconds(3), .seconds(7)])
        #expect(retry.attempts.map { text($0.error) } == ["first", "second", "first", "success"])
        #expect(retry.attempts.map(\.duration) == [.zero, .zero, .zero, .zero])
    }

    @Test("It ends with the error of the last attempt, as it is", arguments: [1, 3]) func allFail(maximum: Int) async {
        let retry = retry(policy(maximum), errors: (1...9).map { TestError.numbered($0) })
        retry.start()
        for second in [1, 2].prefix(maximum - 1) { await clock.pass(.seconds(second)) }
        await #expect(throws: TestError.numbered(maximum)) { try await retry.value }
        #expect(log.events.count == maximum && retry.attempts.count == maximum && clock.deadlines.isEmpty)
    }

    @Test("Without a delay, the next attempt begins immediately") func noDelay() async throws {
        let immediately = RetryPolicy(maximumAttempts: 500, backoff: .none)
        let retry = retry(immediately, errors: (1..<500).map { TestError.numbered($0) })
        retry.start()
        #expect(try await retry.value == 500)
        #expect(clock.deadlines.isEmpty)
    }

    @Test("Each attempt gets the input, unless it has one") func input() async throws {
        let retry = RetryOperation(policy(2)) { attempt in
            let operation = IOBlockOperation<String, String> { text in
                if text == "own" { throw TestError.first }
                return text
            }
            return attempt == 1 ? operation.with(input: "own") : operation
        }
        retry.clock = clock
        retry.input = "given"
        retry.start()
        await clock.pass(.seconds(1))
        #expect(try await retry.value == "given")
    }

    @Test("Attempts are named after the operation and their number, unless they have names") func names() async {
        let log = log
        let retry = RetryOperation(policy(2), name: "load") { attempt in
            ScriptedOperation(attempt == 1 ? nil : "mine") {
                log.add($0.name ?? "no name")
                $0.finish(withError: TestError.first)
            }
        }
        retry.clock = clock
        retry.start()
        await clock.pass(.seconds(1))
        await #expect(throws: TestError.first) { try await retry.finished() }
        #expect(log.events == ["load, attempt 1", "mine"])
    }

    // MARK: - What is tried again

    @Test("A cancellation of an attempt is not retried") func cancelledAttempt() async {
        let asked = log
        var policy = policy()
        policy.shouldRetry = { _, _ in
            asked.add("asked")
            return true
        }
        let retry = retry(policy, errors: [URLError(.cancelled)])
        retry.start()
        await #expect(throws: URLError.self) { try await retry.value }
        #expect(log.events == ["attempt 1"] && retry.attempts.count == 1)
    }

    @Test("The policy is asked about each failed attempt but the last, once") func shouldRetry() async {
        let asked = log
        var policy = policy(3)
        policy.shouldRetry = { error, attempt in
            asked.add("\(error) \(attempt)")
            return true
        }
        let retry = retry(policy, errors: (1...3).map { TestError.numbered($0) })
        retry.start()
        for second in [1, 2] { await clock.pass(.seconds(second)) }
        await #expect(throws: TestError.numbered(3)) { try await retry.value }
        #expect(log.events == ["attempt 1", "numbered(1) 1", "attempt 2", "numbered(2) 2", "attempt 3"])
    }

    @Test("An error that the policy refuses ends it") func refused() async {
        var policy = policy()
        policy.shouldRetry = { error, _ in error as? TestError != .second }
        let retry = retry(policy, errors: [TestError.first, TestError.second])
        retry.start()
        await clock.pass(.seconds(1))
        await #expect(throws: TestError.second) { try await retry.value }
    }

    @Test("An error asks for its own delay, also from inside other errors") func requestedDelay() async throws {
        let busy = { Busy(retryAfter: .seconds($0)) }
        let compound = CompoundOperationError.suboperationFailure(
            name: "both",
            errors: [7, 9, 8].enumerated().map {
                SuboperationError(name: "child", index: $0, error: busy($1))
            })
        let retry = retry(policy(), errors: [busy(30), Busy(retryAfter: nil), compound])
        retry.start()
        for second in [30, 2, 9] { await clock.pass(.seconds(second)) }
        #expect(try await retry.value == 4)
        #expect(retry.attempts.map(\.start) == [.zero, .seconds(30), .seconds(32), .seconds(41)])
        #expect(SuboperationError(name: "child", index: 0, error: busy(4)).requestedDelay == .seconds(4))
    }

    @Test("No delay begins that would pass the total time") func totalTime() async {
        var policy = policy()
        policy.maximumTotalTime = .seconds(5)
        let retry = retry(policy, errors: (1...9).map { TestError.numbered($0) })
        retry.start()
        for second in [1, 2] { await clock.pass(.seconds(second)) }
        await #expect(throws: TestError.numbered(3)) { try await retry.value }
        #expect(clock.deadlines.isEmpty)
    }

    @Test(
        "An attempt that takes too long has failed, and is tried again, compounds included", arguments: [false, true])
    func attemptTimeout(isCompound: Bool) async {
        var policy = policy(2)
        policy.attemptTimeout = .seconds(10)
        let retry = RetryOperation(policy, name: "load") { _ in
            let endless = ScriptedOperation(main: { _ in }) { $0.finish(withError: CancellationError()) }
            return isCompound ? CompoundOperation(operations: [endless]) : endless
        }
        retry.clock = clock
        retry.start()
        for second in [10, 1, 10] { await clock.pass(.seconds(second)) }
        await #expect(throws: (any Error).self) { try await retry.finished() }
        let expected = OperationTimeoutError(operation: "load, attempt 2", timeout: .seconds(10))
        if isCompound {
            guard case CompoundOperationError.cancelled(_, _, let reason)? = retry.error else {
                Issue.record("\(text(retry.error))")
                return
            }
            #expect(reason as? OperationTimeoutError == expected)
        } else {
            #expect(retry.error as? OperationTimeoutError == expected)
        }
        #expect(retry.attempts.map(\.duration) == [.seconds(10), .seconds(10)])
    }

    @Test("An attempt keeps a timeout of its own") func ownTimeout() async {
        var policy = policy(1)
        policy.attemptTimeout = .seconds(10)
        let clock = clock
        let retry = RetryOperation(policy) { _ in
            let endless = ScriptedOperation("own", main: { _ in }) { $0.finish(withError: CancellationError()) }
            endless.clock = clock
            endless.timeout = .seconds(3)
            return endless
        }
        retry.start()
        await clock.pass(.seconds(3))
        await #expect(throws: OperationTimeoutError(operation: "own", timeout: .seconds(3))) {
            try await retry.finished()
        }
    }

    @Test("An exhausted budget ends it with an error that has that of the last attempt") func budget() async {
        var policy = policy()
        policy.budget = RetryBudget(fraction: 0, minimumRetries: 1, clock: clock)
        let retry = retry(policy, errors: [TestError.first, TestError.second])
        retry.start()
        await clock.pass(.seconds(1))
        do {
            _ = try await retry.value
            Issue.record("It succeeded.")
        } catch RetryError.budgetExhausted("load", attempts: 2, let error) {
            #expect(error as? TestError == .second)
        } catch {
            Issue.record(error)
        }
    }

    @Test("A budget is not taken in vain") func budgetInVain() async throws {
        let budget = RetryBudget(fraction: 0, minimumRetries: 1, clock: clock)
        var refusing = policy()
        refusing.budget = budget
        refusing.shouldRetry = { _, _ in false }
        var late = policy()
        late.budget = budget
        late.maximumTotalTime = .milliseconds(1)
        var last = policy(1)
        last.budget = budget
        for policy in [refusing, late, last] {
            let retry = retry(policy, errors: [TestError.first])
            retry.start()
            await #expect(throws: TestError.first) { try await retry.value }
        }
        var policy = policy()
        policy.budget = budget
        let retry = retry(policy, errors: [TestError.first])
        retry.start()
        await clock.pass(.seconds(1))
        #expect(try await retry.value == 2)
    }

    // MARK: - Inside others

    @Test("One that is stopped together with what is around it does not end before it is cancelled")
    func stopped() async {
        let (isMaking, isCancelling, goOn, canEnd) = (Gate(), Gate(), Gate(), Gate())
        let retry = RetryOperation(policy(), name: "load") { _ in
            isMaking.open()
            goOn.pass()
            return IOBlockOperation<Void, Int> { _ in 1 }
        }
        retry.asyncCompletionBlock = { [log, weak retry] error in
            log.add("\(text(error)), \(retry?.isCancelled == true ? "" : "not ")cancelled")
        }
        // The children are stopped first, and this one is cancelled before the other one.
        let first = ScriptedOperation(
            main: { _ in },
            didCancel: { operation in
                isCancelling.open()
                canEnd.pass()
                operation.finish(withError: CancellationError())
            })
        let compound = CompoundOperation(operations: [first, retry])
        compound.start()
        await isMaking.opened()
        async let cancellation: Void = onThread { compound.cancel() }
        await isCancelling.opened()
        goOn.open()
        await eventually("it has not ended") { retry.isFinished }
        canEnd.open()
        await cancellation
        _ = try? await compound.finished()
        #expect(log.events == ["cancelled, cancelled"])
    }
}
