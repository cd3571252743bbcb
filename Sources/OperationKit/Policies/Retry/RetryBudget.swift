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
/// The first attempt of an operation is a call, each further one a retry, and both count when they begin. A retry that the budget
/// does not allow ends the operation with ``RetryError/budgetExhausted(operation:attempts:error:)``: before the delay, if the
/// budget is exhausted then, or after it, if others used it up meanwhile. It can be used from any thread.
public final class RetryBudget: Sendable {
    private let fraction: Double
    private let minimumRetries: Int
    /// The calls, and as marked ones, the retries.
    private let window: Locked<SlidingWindow>
    private let time: TimeSource

    /// Creates a budget.
    ///
    /// A fraction, number or window that makes no sense, because it is negative, for example, traps.
    ///
    /// - Parameters:
    ///   - fraction: How many retries there may be for each call in the window.
    ///   - minimumRetries: How many retries there may be in the window, however few calls there are.
    ///   - window: The time in which calls and retries are counted. It moves in steps of a tenth. More than zero.
    ///   - clock: The clock that measures it.
    public init(
        fraction: Double = 0.2, minimumRetries: Int = 10, per window: Duration = .seconds(10),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(
            fraction >= 0 && fraction.isFinite && minimumRetries >= 0 && window > .zero,
            "OperationKit: a retry budget cannot have a fraction of \(fraction), \(minimumRetries) retries and a window of \(window)"
        )
        self.fraction = fraction
        self.minimumRetries = minimumRetries
        self.window = Locked(SlidingWindow(window))
        time = TimeSource(clock)
    }

    /// The first attempt of an operation begins.
    func callBegan() {
        let now = time.now()
        window.withLock { $0.add(all: 1, at: now) }
    }

    /// Whether the budget allows a retry now.
    ///
    /// - Parameter begins: Whether it begins, and is taken from the budget.
    /// - Returns: Whether it is allowed.
    func allowsRetry(begins: Bool) -> Bool {
        let now = time.now()
        return window.withLock { window in
            window.advance(to: now)
            let retries = window.total.marked + 1
            // The quotient is the number next to the exact one, as the fraction is that next to what was written: 29 of 100 are 0.29.
            let isAllowed = retries <= minimumRetries || Double(retries) / Double(window.total.all) <= fraction
            if begins, isAllowed { window.add(marked: 1, at: now) }
            return isAllowed
        }
    }
}
