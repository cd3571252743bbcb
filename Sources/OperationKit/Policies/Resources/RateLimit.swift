/// Lets so many operations begin in a certain time: the calls of their `main()` are counted.
///
/// ```swift
/// enum Service {
///     static let rate = RateLimit("api", 100, per: .seconds(1))
/// }
///
/// let queue = OperationQueue()
/// for page in 1...1_000 {
///     let request = TaskOperation(name: "page \(page)") { page }
///     request.require(Service.rate)
///     queue.addOperation(request)
/// }
/// ```
///
/// In no time of the given length, wherever it begins, is ``AsyncOperation/main()`` of more of the operations called that require
/// it. An operation uses a permit right before that call, after observers were told of it, and gives it back if `main()` is not called
/// after all. What that begins may come later: the body of a task when there is a thread for it, the
/// children of a compound when that is resumed. Where the system holds up a thread right before the call, that comes later by as much,
/// and the next one does not. How long the work takes makes no difference. Each start is remembered for the duration, in 16 bytes.
/// See ``AsyncOperation/require(_:within:)`` for the order of those that wait.
public final class RateLimit: OperationResource, @unchecked Sendable {
    /// How many operations may begin in ``duration``.
    public let limit: Int
    /// The time in which ``limit`` operations may begin.
    public let duration: Duration

    private let time: TimeSource
    private let timer: DeadlineTimer
    private let permits: Locked<RatePermits>
    /// The deadline at which the next permit returns.
    private let deadline = LatestDeadline()

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - name: Its name, for errors and descriptions. Two with the same name have nothing to do with each other.
    ///   - limit: How many operations may begin in the duration. Traps if it is less than 1.
    ///   - duration: The length of the time. Traps if it is zero or less.
    ///   - maximumWaiting: How many operations may wait. One more ends with
    ///     ``ResourceError/tooManyWaiting(operation:resource:maximum:)``. Traps if it is negative.
    ///   - clock: What the time is measured with.
    public init(
        _ name: String, _ limit: Int, per duration: Duration, maximumWaiting: Int = .max,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(duration > .zero, "OperationKit: the rate limit “\(name)” has a duration of \(duration)")
        self.limit = limit
        self.duration = min(duration, .century)
        time = TimeSource(clock)
        timer = clock.timer
        permits = Locked(RatePermits(per: self.duration))
        super.init(
            "rate limit", name: name, title: "a permit of “\(name)”", limit: limit, maximumWaiting: maximumWaiting,
            isRate: true)
    }

    /// An operation that was granted a permit begins its work now. Called with nothing locked.
    func use() {
        // Between the time of the use and `main()` this thread must not be held up, or the next use could come too early after
        // `main()`. So the deadline is armed before.
        if let next = permits.withLock({ $0.willBeUsed(at: time.now()) }) { arm(next) }
        if let next = permits.withLock({ $0.used(at: time.now()) }) { arm(next) }
    }

    /// Arms the next deadline.
    private func arm(_ instant: Duration) {
        deadline.replace {
            timer.arm(for: self, after: instant - time.now()) { ($0 as? RateLimit)?.returnPermits(at: instant) }
        }
    }

    private func returnPermits(at instant: Duration) {
        // The timer and this object may have asked the clock at slightly different times.
        let now = max(time.now(), instant)
        let (count, next) = permits.withLock { $0.returned(at: now) }
        if let next { arm(next) }
        ResourcePool.shared.permitsReturned(count, of: id)
    }
}

/// When the permits of a rate limit can be used again, as a value.
///
/// Each can be used again when the duration has passed since its use. So there are never more uses than permits in any time of
/// that length, other than with a bucket that is refilled.
struct RatePermits {
    private let duration: Duration
    /// Whether ``returned(at:)`` is going to be reported.
    private var isArmed = false
    /// When permits can be used again, earliest first. Taking the first ones from a slice moves no others.
    private var returns: ArraySlice<Duration> = []

    init(per duration: Duration) {
        self.duration = duration
    }

    /// A permit is about to be used.
    ///
    /// - Returns: When to report ``returned(at:)``, if that is not going to happen anyway.
    mutating func willBeUsed(at now: Duration) -> Duration? {
        wake(at: now + duration)
    }

    /// A permit was used: the work begins.
    ///
    /// - Parameter now: The time, which counts as that of the last use if it is earlier.
    /// - Returns: When to report ``returned(at:)``, if that is not going to happen anyway.
    mutating func used(at now: Duration) -> Duration? {
        let time = max(now + duration, returns.last ?? .zero)
        returns.append(time)
        return wake(at: time)
    }

    /// The time has come.
    ///
    /// - Returns: How many permits can be used again, and when to report the next ones, if there are any.
    mutating func returned(at now: Duration) -> (count: Int, next: Duration?) {
        let count = returns.prefix { $0 <= now }.count
        returns.removeFirst(count)
        isArmed = !returns.isEmpty
        return (count, returns.first)
    }

    private mutating func wake(at time: Duration) -> Duration? {
        exchange(&isArmed, with: true) ? nil : time
    }
}
