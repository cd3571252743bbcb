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
/// Each attempt is an operation of its own, because an operation runs once. Without an input it gets that of this one, which may
/// have none, and without a name it is called “load, attempt 2”, for example. The attempts are children, one at a time, and are released when they have ended. This
/// operation executes, and keeps its place on its queue, from the first attempt to the last, but during the delays no thread waits.
///
/// ## How it ends
///
/// With the output of the first attempt that succeeds, or else with the error of the last one, as it is, so that it can be caught
/// as if there had been one attempt. There is no further attempt if one of these is true. They are checked in this order:
///
/// 1. This operation is cancelled or has an outcome, or `isCancellation` of the error is true. Or what an attempt
///    requires is held by a composite around it, as long as that executes.
/// 2. The policy allows no more attempts.
/// 3. ``RetryPolicy/shouldRetry`` refuses the error.
/// 4. The delay would pass ``RetryPolicy/maximumTotalTime``.
/// 5. The ``RetryPolicy/budget`` does not allow it. This ends the operation with
///    ``RetryError/budgetExhausted(operation:attempts:error:)``.
///
/// The budget is asked again after the delay, when the attempt begins.
///
/// The delay is that of the policy, unless the error is a ``RetryAfterProviding`` and asks for its own. If errors inside the error,
/// such as those of children, ask for delays, the longest one counts.
///
/// An attempt that takes longer than ``RetryPolicy/attemptTimeout`` is cancelled, has failed if it ends so, and is retried like others.
/// ``attempts`` has the errors of all.
///
/// What it requires each attempt requires, so nothing is held during the delays. The attempt waits with the
/// `queuePriority` of this operation and by its clock, unless it has its own.
///
/// Cancelling it cancels the attempt that runs, or ends the delay. It ends after that attempt, and an outcome of the attempt
/// other than a cancellation stands. Its own ``AsyncOperation/timeout`` counts from the first attempt to the last. Its
/// ``AsyncOperation/progress`` is that of the attempt that came farthest; a composite that failed has come to its end.
/// ``AsyncOperation/clock`` measures all times.
///
/// ## Errors
///
/// A policy that makes no sense ends it with ``RetryError/invalidPolicy(operation:problem:)``, without an attempt. If the closure
/// throws, it ends with that error. It ends with ``RetryError/operationReused(operation:attempt:)`` if an operation was started
/// before, with ``CompoundAdditionError/alreadyAdded(operation:compound:)`` if it is part of another one, and with
/// ``CompoundOperationError/dependencyCycle(name:path:)`` if this one is inside it, or it waits for this one.
public final class RetryOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let scheduler: Attempts
    // The lock of the operation guards it. It has as many as are kept at most.
    private var log: [RetryAttempt] = []
    private static var keptCount: Int { 1_000 }

    init(_ policy: RetryPolicy, name: String?, attempts make: @escaping Attempts.Make) {
        scheduler = Attempts(of: "attempt", maximum: policy.maximumAttempts)
        super.init()
        self.name = name
        policy.problem.map(scheduler.refuse)
        becomeComposite(of: scheduler) { [unowned self] input in
            let clock = clock
            let time = TimeSource(clock)
            var firstStart: Duration?
            return try await policy.retrying(named: { displayName }, clock: clock, in: scheduler.children) {
                number, error, delay in
                try await scheduler.wait(delay, on: clock) {
                    emit(.retrying(attempt: number, error: error, delay: delay))
                }
            } attempt: { number in
                let attempt = try await scheduler.next(of: self, input: input, make)
                if let timeout = policy.attemptTimeout {
                    attempt.timeout = min(timeout, attempt.timeout ?? timeout)
                }
                let start = time.now()
                let first = firstStart ?? start
                firstStart = first
                record(RetryAttempt(number: number, start: start - first, duration: nil, error: nil))
                let refusal = await Result { try await scheduler.children.runChild(attempt, weight: 1) }.error
                record(
                    RetryAttempt(
                        number: number, start: start - first, duration: time.now() - start,
                        error: refusal ?? attempt.error))
                if let refusal { throw refusal }
                return result(of: attempt)
            }
        }
    }

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - policy: When to try again, how often, and after which delays.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on. The operation is new, and is started
    ///     by this one only. Called before each attempt, on a thread that it may block, one call at a time, and not once this
    ///     operation is cancelled. What it makes while that happens is cancelled, and ends. If it throws, this operation ends with
    ///     the error. Released at the end.
    public convenience init(
        _ policy: RetryPolicy = RetryPolicy(), name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(policy, name: name, attempts: makeOperation)
    }

    /// The attempts that have begun, in their order, the one that runs included: their errors and times. Of more than a thousand,
    /// the last thousand.
    ///
    /// May be read on any thread, at any time.
    public var attempts: [RetryAttempt] { lock.withLock { log } }

    /// How many attempts have begun.
    ///
    /// May be read on any thread, at any time.
    public var attemptCount: Int { attempts.last?.number ?? 0 }

    /// Does nothing: `start()` begins the first attempt.
    public override func main(input: Input) {}

    override var passesRequestToChildren: Bool { true }

    /// Records the begin of an attempt, or its end. What is not kept is released after unlocking: errors may be of users' types.
    private func record(_ attempt: RetryAttempt) {
        _ = lock.withLock {
            if log.last?.number == attempt.number { log.removeLast() }
            log.append(attempt)
            return log.count > Self.keptCount ? log.removeFirst() : nil
        }
    }
}

extension RetryOperation where Input == Void, Output == Void {
    /// Creates an operation whose attempts are of any class of `AsyncOperation`, compounds included.
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
        self.init(policy, name: name, attempts: makeOperation)
    }
}

extension TaskOperation {
    /// Creates an operation that calls an asynchronous closure again when it throws, as a policy says.
    ///
    /// ```swift
    /// let policy = RetryPolicy(maximumAttempts: 4, backoff: .exponential(.milliseconds(100)))
    /// let page = TaskOperation(name: "page", retry: policy) {
    ///     try await Task.sleep(for: .milliseconds(1))
    ///     return "page"
    /// }
    /// ```
    ///
    /// The closure is called for one attempt after the other, and the operation ends with what the last one returns or throws. An
    /// attempt that takes longer than the policy's ``RetryPolicy/attemptTimeout`` is cancelled, and has failed with an
    /// ``OperationTimeoutError`` if it then throws `CancellationError`. Pauses are measured with ``AsyncOperation/clock``; no thread
    /// waits. Cancelling the operation ends a pause, and no further attempt begins. The closure is kept until the end. With an
    /// ``RetryPolicy/attemptTimeout`` it runs in a task of its own, which is cancelled a moment after the operation.
    ///
    /// It ends with ``RetryError`` if the policy makes no sense, or its budget is exhausted. What it requires each attempt
    /// requires. To make an operation for each attempt, or to see the attempts, use ``RetryOperation``.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - policy: When to call the closure again.
    ///   - body: The work.
    public convenience init(name: String? = nil, retry policy: RetryPolicy, _ body: @escaping Body) {
        self.init(name: name, body)
        taskWork = TaskWork(isRetried: true) { [unowned self] in try await perform(body, retriedBy: policy) }
    }
}

extension IOTaskOperation {
    /// Creates an operation that calls an asynchronous closure again when it throws, as a policy says.
    ///
    /// Does what ``TaskOperation/init(name:retry:_:)`` does. Each attempt gets the same input.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - policy: When to call the closure again.
    ///   - body: The work.
    public convenience init(name: String? = nil, retry policy: RetryPolicy, _ body: @escaping Body) {
        self.init(name: name, body)
        taskWork = TaskWork(isRetried: true) { [unowned self] input in
            try await perform({ try await body(input) }, retriedBy: policy)
        }
    }
}

extension IOOperation {
    fileprivate func perform(
        _ body: @escaping @Sendable () async throws -> Output, retriedBy policy: RetryPolicy
    ) async throws -> Output {
        let clock = clock
        let request = requestOfAttempts
        return try await policy.perform(
            named: { displayName }, clock: clock,
            wait: { [self] number, error, delay in
                setWait("waiting \(delay.shortText) before attempt \(number + 1)")
                defer { setWait(nil) }
                try await clock.pause(for: delay) { emit(.retrying(attempt: number, error: error, delay: delay)) }
            }, requesting: { try await request?.granted(toAttemptOf: self) }, body)
    }
}
