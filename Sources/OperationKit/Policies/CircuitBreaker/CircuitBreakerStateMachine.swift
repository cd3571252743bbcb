/// A state machine that lets calls of a service through as long as enough of them succeed.
///
/// ```
/// closed ──too many failures──▶ open ──its time is over──▶ half open ──all trials succeeded──▶ closed
///                                ▲                             │
///                                └────────a trial failed───────┘
/// ```
///
/// Every state has a number, the calls that it lets through carry it, and only their outcomes count in it. So a call that
/// began before the circuit opened, and succeeds late, does not close it.
struct CircuitBreakerStateMachine {
    struct Configuration {
        /// The circuit opens when at least this part of the calls in the window has failed.
        var failureRatio: Double
        /// With fewer calls in the window, it does not open.
        var minimumCalls: Int
        /// The time in which calls are counted.
        var window: Duration
        /// How long it stays open before calls are let through on trial.
        var openDuration: Duration
        /// How many calls are let through when it is half open. It closes after so many successes.
        var trialCount: Int

        /// What is wrong with the configuration, as the middle of a sentence.
        var problem: String? {
            if !(failureRatio > 0 && failureRatio <= 1) { return "a failure ratio of \(failureRatio)" }
            if minimumCalls < 1 { return "a minimum of \(minimumCalls) calls" }
            if window <= .zero { return "a window of \(window)" }
            if openDuration <= .zero { return "an open duration of \(openDuration)" }
            if trialCount < 1 { return "\(trialCount) calls when it is half open" }
            return nil
        }
    }

    enum State: Equatable {
        case closed
        case open(until: Duration)
        case halfOpen(inFlight: Int, succeeded: Int)
    }

    enum Answer: Equatable {
        /// The outcome of the call, which is known by the number of the state, has to be reported once.
        case allowed(Int)
        /// The time until another call may be let through is known if the circuit is open.
        case rejected(retryAfter: Duration?)
    }

    enum Outcome {
        case success
        /// A timeout is a failure, too.
        case failure
        /// It says nothing of the service.
        case cancellation
    }

    private let configuration: Configuration
    private(set) var state = State.closed
    /// The calls that ended in the current state, and as marked ones, those that failed. Counted while the circuit is closed.
    private var window: SlidingWindow
    /// The number of the current state.
    private var period = 0

    init(_ configuration: Configuration) {
        self.configuration = configuration
        window = SlidingWindow(configuration.window)
    }

    // MARK: - Events

    /// An operation wants to know whether it makes sense to wait for its turn. Nothing is taken.
    ///
    /// - Parameter now: The time.
    /// - Returns: What ``called(at:)`` would return now.
    func answer(at now: Duration) -> Answer {
        switch state {
        case .closed: .allowed(period)
        case .open(let end): now < end ? .rejected(retryAfter: end - now) : .allowed(period + 1)
        case .halfOpen(let inFlight, let succeeded):
            inFlight + succeeded < configuration.trialCount ? .allowed(period) : .rejected(retryAfter: nil)
        }
    }

    /// An operation is about to begin its work.
    mutating func called(at now: Duration) -> Answer {
        let answer = answer(at: now)
        if case .rejected = answer { return answer }
        switch state {
        case .closed: break
        case .open: enter(.halfOpen(inFlight: 1, succeeded: 0))
        case .halfOpen(let inFlight, let succeeded): state = .halfOpen(inFlight: inFlight + 1, succeeded: succeeded)
        }
        return answer
    }

    /// An operation that was let through has ended, or has not begun after all, which counts as a cancellation.
    mutating func ended(_ call: Int, _ outcome: Outcome, at now: Duration) {
        guard call == period else { return }
        switch (state, outcome) {
        case (.closed, .cancellation):
            break
        case (.closed, _):
            window.add(all: 1, marked: outcome == .failure ? 1 : 0, at: now)
            // Also after a success, which may be the call that was missing.
            if hasFailed { open(at: now) }
        case (.halfOpen(let inFlight, let succeeded), .cancellation):
            state = .halfOpen(inFlight: inFlight - 1, succeeded: succeeded)
        case (.halfOpen(let inFlight, let succeeded), .success):
            if succeeded + 1 == configuration.trialCount {
                enter(.closed)
            } else {
                state = .halfOpen(inFlight: inFlight - 1, succeeded: succeeded + 1)
            }
        case (.halfOpen, .failure):
            open(at: now)
        case (.open, _):
            preconditionFailure("OperationKit: a call was let through an open circuit")
        }
    }

    // MARK: - Changing the state

    private var hasFailed: Bool {
        let (all, failed) = window.total
        // The product may be slightly too large: 0.07 of 100 is more than 7.
        let limit = (configuration.failureRatio - 1e-9) * Double(all)
        return all >= configuration.minimumCalls && failed > 0 && Double(failed) >= limit
    }

    private mutating func open(at now: Duration) {
        enter(.open(until: now + min(configuration.openDuration, .century)))
    }

    private mutating func enter(_ next: State) {
        state = next
        period += 1
        window = SlidingWindow(configuration.window)
    }
}

/// How often something happened in the last so many seconds, and how often something of interest.
///
/// The window is divided into ten parts, each of which counts as a whole until it has passed. So it has the last nine to ten
/// tenths of its duration in it, and takes the same memory however much happens.
struct SlidingWindow {
    private static let partCount: Int64 = 10

    /// The length of a part, in nanoseconds.
    private let part: Int64
    /// Those of the current part, and of all others that are still in the window, by the number of the part.
    private var parts: [(number: Int64, all: Int, marked: Int)] = []

    var total: (all: Int, marked: Int) { parts.reduce((0, 0)) { ($0.0 + $1.all, $0.1 + $1.marked) } }

    /// - Parameter duration: The length of the window, more than zero.
    init(_ duration: Duration) {
        part = max(duration.nanoseconds / SlidingWindow.partCount, 1)
    }

    /// Something happened. Times come in order; one that comes late counts for the current part.
    ///
    /// - Parameters:
    ///   - all: How often.
    ///   - marked: How often something of interest happened.
    ///   - now: The time since the window was created.
    mutating func add(all: Int = 0, marked: Int = 0, at now: Duration) {
        advance(to: now)
        let number = max(now.nanoseconds / part, parts.last?.number ?? 0)
        if parts.last?.number != number { parts.append((number, 0, 0)) }
        parts[parts.count - 1].all += all
        parts[parts.count - 1].marked += marked
    }

    /// Forgets what is no longer in the window.
    mutating func advance(to now: Duration) {
        let oldest = now.nanoseconds / part - SlidingWindow.partCount
        parts.removeAll { $0.number <= oldest }
    }
}
