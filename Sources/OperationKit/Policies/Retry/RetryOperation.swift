import Foundation

/// An operation that makes an operation and runs it, and makes and runs another one in its place when that fails.
///
/// ```swift
/// var policy = RetryPolicy(maximumAttempts: 5, backoff: .exponential(.milliseconds(200), maximum: .seconds(10)))
/// policy.attemptTimeout = .seconds(30)
/// let load = RetryOperation(policy, name: "load") { attempt in
///     TaskOperation { "page, loaded in attempt \(attempt)" }
/// }
/// print(try await OperationQueue().run(load))
/// ```
///
/// Each attempt is an operation of its own, because an operation runs once. It gets the input of this one, and without a name it is
/// called “load, attempt 2”, for example. The attempts are children, one at a time, and are released when they have ended. This
/// operation executes, and keeps its place on its queue, from the first attempt to the last, but during the delays no thread waits.
///
/// ## How it ends
///
/// With the output of the first attempt that succeeds, or else with the error of the last one, as it is, so that it can be caught
/// as if there had been one attempt. No further attempt follows
///
/// 1. an error whose `isCancellation` is true, and once this operation is cancelled or given an outcome;
/// 2. the last attempt that the policy allows;
/// 3. an error that ``RetryPolicy/shouldRetry`` refuses;
/// 4. if the delay would pass ``RetryPolicy/maximumTotalTime``;
/// 5. if the ``RetryPolicy/budget`` does not allow it, which ends it with ``RetryError/budgetExhausted(operation:attempts:error:)``;
///
/// which is also the order in which this is asked. The budget is asked again after the delay, when the attempt begins. The delay is
/// that of the policy, or the one that the error asks for as a ``RetryAfterProviding``; where that is inside other errors, as those
/// of children, the longest one. An attempt that took longer than ``RetryPolicy/attemptTimeout`` has failed, and is retried like
/// others. ``attempts`` has the errors of all.
///
/// Cancelling it cancels the attempt that runs, or ends the delay. It ends after that attempt, and an outcome of the attempt
/// other than a cancellation stands. Its own ``AsyncOperation/timeout`` counts from the first attempt to the last. Its
/// ``AsyncOperation/progress`` is that of the attempt that came farthest. ``AsyncOperation/clock`` measures all times.
///
/// ## Errors
///
/// A policy that makes no sense ends it with ``RetryError/invalidPolicy(operation:problem:)``, without an attempt. If the closure
/// throws, it ends with that error. It ends with ``RetryError/operationReused(operation:attempt:)`` if an operation was started
/// before, with ``CompoundAdditionError/alreadyAdded(operation:compound:)`` if it is part of another one, and with
/// ``CompoundOperationError/dependencyCycle(name:path:)`` if this one is inside it, or it waits for this one.
public final class RetryOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let runner: AttemptRunner<Input, Output>
    // The lock of the operation guards these.
    /// Set until the end.
    private var policy: RetryPolicy?
    private var run: Run?
    private var log = AttemptLog()

    /// What changes from attempt to attempt.
    private struct Run {
        let time: TimeSource
        var schedule: RetrySchedule
        /// The attempt that runs, or with which the operation ends.
        var current: Attempt<Input, Output>?
        /// When the next attempt begins, during a delay.
        var nextStart: Duration?
        /// What the operation ends with instead of the result of an attempt.
        var failure: (any Error)?
    }

    init(_ policy: RetryPolicy, name: String?, attempts: @escaping AttemptRunner<Input, Output>.Make) {
        self.policy = policy
        runner = AttemptRunner(of: "attempt", attempts)
        super.init()
        becomeComposite(of: runner.children)
        self.name = name
        runner.attach(
            to: self, start: { [unowned self] in startAttempts() },
            takeResult: { [unowned self] in takeResult() },
            summary: { [weak self] in self?.summary })
    }

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - policy: When to try again, how often, and after which delays.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on. The operation is new, and is started
    ///     by this one only. Called before each attempt on a thread of a private queue, one call at a time, and not once this
    ///     operation is cancelled. If it throws, this operation ends with the error. Released at the end.
    public convenience init(
        _ policy: RetryPolicy = RetryPolicy(), name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(policy, name: name, attempts: { Attempt(try makeOperation($0)) })
    }

    /// The attempts that have begun, in their order, the one that runs included: their errors and times. Of more than a thousand,
    /// the last thousand.
    ///
    /// May be read on any thread, at any time.
    public var attempts: [RetryAttempt] { lock.withLock { log.attempts } }

    /// Does nothing: `start()` begins the first attempt.
    public override func main(input: Input) {}

    // MARK: - Attempts

    private func startAttempts() {
        guard let input = requiredInput(), let policy = lock.withLock({ policy }) else { return }
        if let problem = policy.problem {
            return fail(beforeRunning: RetryError.invalidPolicy(operation: displayName, problem: problem))
        }
        let clock = clock
        let time = TimeSource(clock)
        lock.withLock { run = Run(time: time, schedule: RetrySchedule(policy)) }
        policy.budget?.callBegan()
        runner.start(with: input, for: self) { [unowned self] in beginAttempt() }
    }

    private func beginAttempt() {
        guard let (time, number) = lock.withLock({ run.map { ($0.time, $0.schedule.attempt) } }) else { return }
        if number > 1, let error = budgetError(before: number) { return end(with: error) }
        do {
            try runner.begin(number, of: self) { attempt in
                limitTime(of: attempt.operation)
                let now = time.now()
                let removed = lock.withLock {
                    run?.current = attempt
                    run?.nextStart = nil
                    return log.began(number, at: now)
                }
                withExtendedLifetime(removed) {}
            } then: { [unowned self] in
                attemptEnded()
            }
        } catch {
            end(with: error)
        }
    }

    /// Takes a retry from the budget, when that begins.
    ///
    /// - Returns: The error to end with, if the budget does not allow it.
    private func budgetError(before number: Int) -> RetryError? {
        let (budget, lastError) = lock.withLock { (policy?.budget, log.lastError) }
        guard let budget, let lastError, !runner.isStopped(self), !budget.takeRetry() else { return nil }
        return .budgetExhausted(operation: displayName, attempts: number - 1, error: lastError)
    }

    /// Gives an attempt the timeout of the policy, unless it has its own, and the clock of this operation with it.
    private func limitTime(of operation: AsyncOperation) {
        guard let timeout = lock.withLock({ policy?.attemptTimeout }), operation.timeout == nil else { return }
        if !operation.withState({ $0.preparations?.clock != nil }) { operation.clock = clock }
        operation.timeout = timeout
    }

    /// Called in a turn, unless the operation was cancelled before. Only turns change the run, and one comes after the other.
    private func attemptEnded() {
        guard let (run, policy) = lock.withLock({ run.flatMap { run in policy.map { (run, $0) } } }) else { return }
        let error = run.current?.operation.error
        recordEnd(of: run)
        guard let error, !error.isCancellation, !runner.isStopped(self), !run.schedule.isLastAttempt,
            policy.shouldRetry(error, run.schedule.attempt)
        else { return }
        var schedule = run.schedule
        let (now, requested) = (run.time.now(), error.requestedDelay)
        let elapsed = lock.withLock { log.elapsed(at: now) }
        guard case .retry(let delay) = schedule.attemptFailed(requestedDelay: requested, elapsed: elapsed),
            !runner.isStopped(self)
        else { return }
        if let budget = policy.budget, !budget.allowsRetry {
            let failed = run.schedule.attempt
            return end(with: RetryError.budgetExhausted(operation: displayName, attempts: failed, error: error))
        }
        // The attempt is released after unlocking.
        lock.withLock {
            self.run?.schedule = schedule
            self.run?.current = nil
            self.run?.nextStart = now.adding(delay)
        }
        emit(.retrying(attempt: run.schedule.attempt, error: error, delay: delay))
        do {
            try runner.wait(delay, in: self) { [unowned self] in beginAttempt() }
        } catch {
            end(with: error)
        }
    }

    private func recordEnd(of run: Run) {
        guard let operation = run.current?.operation else { return }
        let (error, now) = (operation.error, run.time.now())
        lock.withLock { log.ended(with: error, at: now) }
    }

    // MARK: - The end

    private func end(with error: any Error) {
        // The attempt may not have run. Release it after unlocking.
        let unused = lock.withLock {
            run?.failure = error
            return run?.current.take()
        }
        withExtendedLifetime(unused) {}
    }

    /// Returns the result, and releases all that is left.
    private func takeResult() -> Result<Output, any Error> {
        let (run, policy) = lock.withLock { (self.run.take(), self.policy.take()) }
        withExtendedLifetime(policy) {}
        if let run { recordEnd(of: run) }
        if let failure = run?.failure { return .failure(failure) }
        return run?.current?.result ?? .failure(CancellationError())
    }

    private var summary: [String] {
        guard let (run, policy) = lock.withLock({ run.flatMap { run in policy.map { (run, $0) } } }) else { return [] }
        let maximum = policy.maximumAttempts < .max ? policy.maximumAttempts : nil
        return runner.summary(
            run.schedule.attempt, of: maximum, beginsIn: run.nextStart.map { $0 - run.time.now() })
    }
}

extension RetryOperation where Input == Void, Output == Void {
    /// Creates an operation whose attempts are operations of any class, compounds included.
    ///
    /// ```swift
    /// let sync = RetryOperation(name: "sync") { _ in
    ///     CompoundOperation(operations: [ThrowingBlockOperation { /* … */ }, ThrowingBlockOperation { /* … */ }])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - policy: When to try again, how often, and after which delays.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt. See the other initializer.
    @_disfavoredOverload
    public convenience init(
        _ policy: RetryPolicy = RetryPolicy(), name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> AsyncOperation
    ) {
        self.init(policy, name: name, attempts: { Attempt(ofAnyClass: try makeOperation($0)) })
    }
}
