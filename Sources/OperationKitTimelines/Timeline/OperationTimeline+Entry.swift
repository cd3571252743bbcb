public import OperationKit

extension OperationTimeline {
    /// What happened to one operation.
    ///
    /// A time is `nil` if that has not happened, or was not seen because the observer was added later. All times are
    /// counted from the beginning of the timeline.
    public struct Entry: Sendable, Equatable, Identifiable {
        /// The identifier of the operation: its ``/OperationKit/AsyncOperation/observationID``.
        public var id: OperationID
        /// The name of the operation, or what messages call it.
        public var name: String
        /// The type of the operation.
        public var typeName: String
        /// The composite around the operation.
        public var parent: OperationID?
        /// When it became a child of a composite.
        public var added: Duration?
        /// When it started to execute. It may have had to wait before its `main()`.
        public var started: Duration?
        /// When its `main()` was called, or its children started.
        public var running: Duration?
        /// When it was cancelled.
        public var cancelled: Duration?
        /// When it finished.
        public var finished: Duration?
        /// What it, or an attempt of its closure, waited for before its work, or slept for as a workflow, oldest first.
        public var waits: [Wait]
        /// The attempts that failed and were to be followed by another one, oldest first.
        public var retries: [Retry]
        /// How it ended; `nil` if it has not.
        public var outcome: Outcome?
        /// The operations that it depended on. They need not be in the timeline.
        public var dependencies: [OperationID]
        /// The names of the resources that it held while it ran. Those of an attempt of a closure are not known.
        public var resources: [String]
        /// Whether it consists of other operations: what its closures do themselves does not count as work.
        public var isComposite: Bool
        /// How many of its children could run at the same time, if that was limited, as it was at its last event.
        public var limit: Int?

        /// Creates an entry.
        ///
        /// - Parameters:
        ///   - id: The identifier of the operation.
        ///   - name: Its name.
        ///   - typeName: Its type.
        ///   - parent: The composite around it.
        ///   - added: When it became a child of a composite.
        ///   - started: When it started to execute.
        ///   - running: When its `main()` was called, or its children started.
        ///   - cancelled: When it was cancelled.
        ///   - finished: When it finished.
        ///   - waits: What it waited or slept for, oldest first.
        ///   - retries: The attempts that failed and were to be followed by another one, oldest first.
        ///   - outcome: How it ended.
        ///   - dependencies: The operations that it depended on.
        ///   - resources: The names of the resources that it held while it ran.
        ///   - isComposite: Whether it consists of others.
        ///   - limit: How many of its children could run at the same time, if that was limited.
        public init(
            id: OperationID, name: String, typeName: String = "Operation", parent: OperationID? = nil,
            added: Duration? = nil, started: Duration? = nil, running: Duration? = nil, cancelled: Duration? = nil,
            finished: Duration? = nil, waits: [Wait] = [], retries: [Retry] = [],
            outcome: Outcome? = nil, dependencies: [OperationID] = [], resources: [String] = [],
            isComposite: Bool = false, limit: Int? = nil
        ) {
            self.id = id
            self.name = name
            self.typeName = typeName
            self.parent = parent
            self.added = added
            self.started = started
            self.running = running
            self.cancelled = cancelled
            self.finished = finished
            self.waits = waits
            self.retries = retries
            self.outcome = outcome
            self.dependencies = dependencies
            self.resources = resources
            self.isComposite = isComposite
            self.limit = limit
        }
    }

    /// A time in which an operation waited after its start, or slept.
    public struct Wait: Sendable, Equatable, Codable {
        /// What it did in that time, in words that follow “while”: “waiting for exclusive access to “database””,
        /// “sleeping for 2 s”.
        public var reason: String
        /// When it began to wait.
        public var from: Duration
        /// When the wait was over; `nil` if it was not.
        public var to: Duration?

        /// Creates a wait.
        ///
        /// - Parameters:
        ///   - reason: What the operation did in that time, in words.
        ///   - from: When it began to wait.
        ///   - to: When the wait was over; `nil` if it was not.
        public init(reason: String, from: Duration, to: Duration?) {
            self.reason = reason
            self.from = from
            self.to = to
        }
    }

    /// An attempt that failed and was to be followed by another one.
    public struct Retry: Sendable, Equatable, Codable {
        /// The number of the attempt, from 1.
        public var attempt: Int
        /// The description of its error.
        public var error: String
        /// When the delay after it began.
        public var time: Duration
        /// How long it was to wait before the next attempt.
        public var delay: Duration

        /// Creates an attempt.
        ///
        /// - Parameters:
        ///   - attempt: The number of the attempt, from 1.
        ///   - error: The description of its error.
        ///   - time: When the delay after it began.
        ///   - delay: How long it was to wait before the next attempt.
        public init(attempt: Int, error: String, time: Duration, delay: Duration) {
            self.attempt = attempt
            self.error = error
            self.time = time
            self.delay = delay
        }
    }

    /// How an operation ended.
    public enum Outcome: Sendable, Hashable {
        /// Without an error.
        case success
        /// With an error that stands for a cancellation.
        case cancelled
        /// With another error, whose description this is.
        case failed(String)
        /// It did not run, because another operation did not succeed. The text says which.
        case skipped(String)
    }
}

// MARK: - Times

extension OperationTimeline.Entry {
    /// The first of the times. Zero if there are none.
    var firstTime: Duration { ownTimes.min() ?? .zero }

    /// Whether a time is negative.
    var hasNegativeTime: Bool { (allTimes + retries.map(\.delay)).contains { $0 < .zero } }

    /// Makes times earlier that are so late that sums could overflow.
    mutating func bound() {
        added = added?.bounded
        started = started?.bounded
        running = running?.bounded
        cancelled = cancelled?.bounded
        finished = finished?.bounded
        waits = waits.map { .init(reason: $0.reason, from: $0.from.bounded, to: $0.to?.bounded) }
        retries = retries.map {
            .init(attempt: $0.attempt, error: $0.error, time: $0.time.bounded, delay: $0.delay.bounded)
        }
    }

    /// Whether nothing ends before it begins.
    var isInOrder: Bool {
        let times = [started, running, finished].compactMap(\.self)
        return times == times.sorted() && waits.allSatisfy { $0.from <= $0.to ?? $0.from }
    }

    /// Whether the end of the operation is not known.
    var isUnfinished: Bool { finished == nil }

    /// When it started, as far as that was seen.
    var begin: Duration? { started ?? running }

    /// How long after its addition to a composite it started; `nil` if that was immediately, or is not known.
    var startDelay: Duration? {
        guard let added, let started, started > added else { return nil }
        return started - added
    }

    /// When its work, or that of its children, began: not before its start.
    var workStart: Duration? { running.map { max($0, started ?? $0) } ?? (waits.isEmpty ? started : nil) }

    private var ownTimes: [Duration] { [added, started, running, cancelled, finished].compactMap(\.self) }

    var allTimes: [Duration] {
        ownTimes + waits.flatMap { [$0.from, $0.to ?? $0.from] } + retries.map(\.time)
    }

    /// The delays between attempts, oldest first. A delay is over when the operation goes on, or at its end.
    func pauses(end: Duration) -> [Range<Duration>] {
        zip(retries, retries.dropFirst().map(\.time) + [end]).compactMap { retry, next in
            let to = min(retry.time + retry.delay, next, end)
            return retry.time < to ? retry.time..<to : nil
        }
    }
}

extension OperationTimeline.Outcome {
    /// What the outcome is called in a word.
    var name: String {
        switch self {
        case .success: "success"
        case .cancelled: "cancelled"
        case .failed: "failed"
        case .skipped: "skipped"
        }
    }

    /// The description of the error, if there is one.
    var error: String? {
        switch self {
        case .failed(let error), .skipped(let error): error
        default: nil
        }
    }
}

extension Duration {
    /// The latest time of a timeline: 73 years.
    static let latest = Duration.nanoseconds(Int64(1) << 61)

    /// The duration in whole nanoseconds, or the latest time if that is less.
    var bounded: Duration { min(.nanoseconds(nanoseconds), .latest) }
}
