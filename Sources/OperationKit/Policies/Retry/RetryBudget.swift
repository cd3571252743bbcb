/// What keeps the retries of many operations below a fraction of their calls, so that a failing service is not stormed.
///
/// With three attempts each, operations would send three times as many requests to a service that is failing, perhaps
/// because there are too many. Let all operations that use the same service share a budget:
///
/// ```swift
/// let budget = RetryBudget(fraction: 0.1)
/// var policy = RetryPolicy(maximumAttempts: 3)
/// policy.budget = budget
/// ```
///
/// The first attempt of an operation is a call, each further one a retry. A retry that the budget does not allow ends the
/// operation with ``RetryError/budgetExhausted(operation:attempts:error:)``. It can be used from any thread.
public final class RetryBudget: Sendable {
    private let machine: Locked<RetryBudgetStateMachine>
    private let time: TimeSource

    /// Creates a budget.
    ///
    /// A fraction, number or window that makes no sense, because it is negative, for example, traps.
    ///
    /// - Parameters:
    ///   - fraction: How many retries there may be for each call in the window.
    ///   - minimumRetries: How many retries there may be in the window, however few calls there are.
    ///   - window: The time in which calls and retries are counted. More than zero.
    ///   - clock: The clock that measures it.
    public init(
        fraction: Double = 0.2, minimumRetries: Int = 10, per window: Duration = .seconds(10),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(
            fraction >= 0 && fraction.isFinite && minimumRetries >= 0 && window > .zero,
            "OperationKit: a retry budget cannot have a fraction of \(fraction), \(minimumRetries) retries and a window of \(window)"
        )
        machine = Locked(RetryBudgetStateMachine(fraction: fraction, minimumRetries: minimumRetries, window: window))
        time = TimeSource(clock)
    }

    /// The first attempt of an operation begins.
    func callBegan() {
        let now = time.now()
        machine.withLock { $0.callBegan(at: now) }
    }

    /// Takes a retry from the budget.
    ///
    /// - Returns: Whether the budget allows it.
    func takeRetry() -> Bool {
        let now = time.now()
        return machine.withLock { $0.retryRequested(at: now) }
    }
}

/// A state machine that allows retries up to a fraction of the calls in a window of time.
struct RetryBudgetStateMachine: Sendable {
    private let fraction: Double
    private let minimumRetries: Int
    /// The calls, and as marked ones, the retries.
    private var window: SlidingWindow

    init(fraction: Double, minimumRetries: Int, window: Duration) {
        self.fraction = fraction
        self.minimumRetries = minimumRetries
        self.window = SlidingWindow(window)
    }

    /// The first attempt of an operation begins.
    mutating func callBegan(at now: Duration) {
        window.add(.init(all: 1), at: now)
    }

    /// An operation is about to try again.
    ///
    /// - Returns: Whether it may.
    mutating func retryRequested(at now: Duration) -> Bool {
        window.advance(to: now)
        let allowed = max(Double(minimumRetries), fraction * Double(window.total.all))
        guard Double(window.total.marked + 1) <= allowed else { return false }
        window.add(.init(marked: 1), at: now)
        return true
    }
}
