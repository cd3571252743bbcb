public import Foundation

/// Keeps operations from calling a service that fails, until it may have recovered.
///
/// ```swift
/// enum Payment {
///     static let circuit = CircuitBreaker("payment", failureRatio: 0.5, minimumCalls: 20)
/// }
///
/// let pay = AsyncBlockOperation(name: "pay") { finish in finish() }
/// pay.require(Payment.circuit)
/// ```
///
/// | State | Operations that require it |
/// |---|---|
/// | ``State-swift.enum/closed`` | run, and are counted. If enough of those in the window fail, the circuit opens |
/// | ``State-swift.enum/open`` | end immediately with ``CircuitOpenError``, until the time is over |
/// | ``State-swift.enum/halfOpen`` | run up to a certain number, all others end with that error. If all succeed, the circuit closes; if one fails, it opens again |
///
/// The outcome of an operation is that of its work, and counts once its `asyncCompletionBlock` has returned: a failure is an error whose
/// `isCancellation` is false, so an ``OperationTimeoutError`` is one, too, and so is such an error of
/// ``AsyncOperation/cancel(withError:)``. Cancellations do not count, nor do operations whose `main()` was not called, nor those that
/// began before the circuit changed its state. Where a retry or a repetition requires it, each attempt counts: one that is cancelled with
/// the whole ends for the reason of that. Give the operations a ``AsyncOperation/timeout``: one on trial that never ends keeps the
/// circuit half open. A circuit breaker is known by the object, not by its name: keep it where all that need it find it, as in a
/// `static let`.
public final class CircuitBreaker: Sendable {
    /// What a circuit breaker does with operations.
    public enum State: Hashable, Sendable {
        /// They run.
        case closed
        /// They end immediately.
        case open
        /// Some of them run on trial.
        case halfOpen
    }

    /// The name of the circuit breaker, for errors and descriptions.
    public let name: String
    private let machine: Locked<CircuitBreakerStateMachine>
    private let time: TimeSource
    private let isFailure: @Sendable (any Error) -> Bool

    /// Creates a circuit breaker, which is closed. Traps if a number makes no sense.
    ///
    /// - Parameters:
    ///   - name: Its name, for errors and descriptions. Two with the same name have nothing to do with each other.
    ///   - failureRatio: The circuit opens when at least this part of the operations in the window has failed: more than 0, and
    ///     at most 1.
    ///   - minimumCalls: With fewer operations in the window it does not open. At least 1.
    ///   - window: The time in which operations are counted, by their end. It moves in steps of a tenth. More than zero.
    ///   - openDuration: How long it is open before it lets operations through on trial. More than zero.
    ///   - halfOpenCalls: How many it lets through on trial. All of them have to succeed. At least 1.
    ///   - clock: What the time is measured with.
    ///   - isFailure: Says whether an error that is no cancellation counts as a failure, on the thread that ended the operation or the
    ///     attempt, which it must not block, before that is finished, with nothing locked. Otherwise it counts as a success: the service
    ///     has answered, as with a status of 404. Every error counts by default.
    public init(
        _ name: String, failureRatio: Double = 0.5, minimumCalls: Int = 20, window: Duration = .seconds(10),
        openDuration: Duration = .seconds(30), halfOpenCalls: Int = 3,
        clock: any Clock<Duration> = ContinuousClock(),
        isFailure: @escaping @Sendable (_ error: any Error) -> Bool = { _ in true }
    ) {
        let configuration = CircuitBreakerStateMachine.Configuration(
            failureRatio: failureRatio, minimumCalls: minimumCalls, window: min(window, .century),
            openDuration: openDuration, trialCount: halfOpenCalls)
        if let problem = configuration.problem {
            preconditionFailure("OperationKit: the circuit breaker “\(name)” has \(problem)")
        }
        self.name = name
        machine = Locked(CircuitBreakerStateMachine(configuration))
        time = TimeSource(clock)
        self.isFailure = isFailure
    }

    /// The state, for diagnostics: it may be another one by the time it is looked at. An open circuit whose time is over is half
    /// open.
    public var state: State {
        switch machine.withLock({ $0.state }) {
        case .closed: .closed
        case .open(let end): time.now() < end ? .open : .halfOpen
        case .halfOpen: .halfOpen
        }
    }

    // MARK: - Calls. Nothing is locked in any of these.

    /// Lets an operation through, if the circuit allows it.
    ///
    /// - Parameters:
    ///   - operation: The operation.
    ///   - begins: Whether it is about to begin its work. If not, it only asks whether to wait for its turn, and nothing is taken.
    /// - Returns: The call, whose end has to be reported if the work begins.
    /// - Throws: `CircuitOpenError`.
    @discardableResult
    func allow(_ operation: AsyncOperation, begins: Bool) throws -> Int {
        let now = time.now()
        switch machine.withLock({ begins ? $0.called(at: now) : $0.answer(at: now) }) {
        case .allowed(let call): return call
        case .rejected(let retryAfter):
            throw CircuitOpenError(operation: operation.displayName, circuit: name, retryAfter: retryAfter)
        }
    }

    /// A call has ended, with `CancellationError` also if its work has not begun after all.
    func ended(_ call: Int, with error: (any Error)?) {
        var outcome = CircuitBreakerStateMachine.Outcome.success
        if let error { outcome = error.isCancellation ? .cancellation : isFailure(error) ? .failure : .success }
        let now = time.now()
        machine.withLock { $0.ended(call, outcome, at: now) }
    }
}

/// An operation did not run, because a circuit breaker that it requires lets nothing through at the moment. Code 1.
public struct CircuitOpenError: Equatable, RetryAfterProviding, LocalizedError, CustomNSError, ReportedError {
    /// The name of the operation, or else its type.
    public let operation: String
    /// The name of the circuit breaker.
    public let circuit: String
    /// How long until it lets something through again; `nil` if that depends on operations that are on trial now.
    public let retryAfter: Duration?

    /// Creates the error.
    ///
    /// - Parameters:
    ///   - operation: The name of the operation.
    ///   - circuit: The name of the circuit breaker.
    ///   - retryAfter: How long until it lets something through again, if that is known.
    public init(operation: String, circuit: String, retryAfter: Duration?) {
        self.operation = operation
        self.circuit = circuit
        self.retryAfter = retryAfter
    }

    package func text(depth: Int) -> String {
        "The operation “\(operation)” did not run, because the circuit breaker “\(circuit)” "
            + (retryAfter.map { "is open, for another \($0.shortText)." }
                ?? "lets no other operation through until those on trial have ended.")
    }
}
