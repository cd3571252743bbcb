import Foundation

/// Something that has happened to an operation.
///
/// An event holds an identifier and a name of its operation, not the operation: keeping events keeps nothing alive.
///
/// ```swift
/// let download = TaskOperation(name: "download") { "page" }
/// let events = download.events
/// OperationQueue().addOperation(download)
/// for await event in events {
///     print(event)
/// }
/// ```
public struct OperationEvent: Sendable, CustomStringConvertible {
    /// What has happened.
    public enum Kind: Sendable {
        /// The operation became a child of a composite. A step of a macro was added to the macro that was there then; longer ones, which
        /// `then` makes of it, take it over without an event.
        // Not in place, because every copy of an event would be larger for it.
        indirect case added(to: OperationID, name: String)
        /// The operation started to execute. It may have to wait before its `main()`.
        case started
        /// The operation waits before its `main()`, for a condition or a resource, in words: “waiting for exclusive access to
        /// “database””, whatever holds that. Also in the body of a workflow, when it sleeps, and before an attempt of a closure that is
        /// retried.
        case waiting(for: String)
        /// `main()` is about to be called; the children of a composite are about to start. Again after such a wait in
        /// a workflow or between attempts.
        case running
        /// The operation was cancelled, before its start, during its execution, or while it waited. It goes on until it is
        /// finished. The reason is that of ``AsyncOperation/cancel(withError:)``, an ``OperationTimeoutError`` for example; `nil` for
        /// a cancellation without one.
        case cancelled(reason: (any Error)?)
        /// An attempt has failed, and another one is to follow after a delay, unless the operation ends before.
        indirect case retrying(attempt: Int, error: any Error, delay: Duration)
        /// The operation has finished, with this error, or `nil` for success. It is the last event of an operation.
        case finished(error: (any Error)?)
    }

    /// The operation to which it happened. For an observer of a composite, that is the composite or what is inside it.
    public let operation: OperationID
    /// What has happened.
    public let kind: Kind
    /// The name of the operation, unless that follows from its class, which takes long to write down.
    let givenName: String?
    let type: AsyncOperation.Type
    /// When it has happened, in nanoseconds from the first event of the process on. A number, because copying an instant is slow.
    let nanoseconds: Int64
    /// How many events before this one were dropped, because ``OperationEvents`` were not read fast enough. Zero for an observer.
    public internal(set) var droppedCount = 0

    private static let origin = ContinuousClock.now

    /// The name of the operation, or what it is called in messages without one, when the event was delivered.
    public var name: String { givenName ?? type.typeTitle }

    /// When it has happened.
    public var time: ContinuousClock.Instant { OperationEvent.origin + .nanoseconds(nanoseconds) }

    /// The time from the first event of the process to now, in nanoseconds.
    static var now: Int64 {
        (ContinuousClock.now - origin).nanoseconds
    }

    /// A line such as “load” retries in 0.5 seconds, because attempt 1 failed: …
    public var description: String {
        "“\(name)” " + kind.description
    }
}

extension OperationEvent.Kind: CustomStringConvertible {
    /// What has happened, in words that follow the name of the operation.
    public var description: String {
        switch self {
        case .added(_, let name): "was added to “\(name)”"
        case .started: "started"
        case .waiting(let reason): "is \(reason)"
        case .running: "runs"
        case .cancelled(let reason): reason.map { "was cancelled: \($0.eventText)" } ?? "was cancelled"
        case .retrying(let attempt, let error, let delay):
            "retries in \(delay), because attempt \(attempt) failed: \(error.eventText)"
        case .finished(nil): "finished"
        case .finished(let error?):
            error.isCancellation ? "finished as cancelled" : "failed: \(error.eventText)"
        }
    }
}

extension AsyncOperation {
    /// Keeps the operation from having events, because only the library knows it. Called before it is used.
    package func hideFromObservers() {
        withState { $0.eventQueue = .hidden }
    }

    /// What the operation depends on, as observers know it: instead of one that is hidden from them, what that depends on.
    package var observedDependencies: [OperationID] {
        dependencies.flatMap {
            ($0 as? AsyncOperation)?.withState { $0.isHidden } == true ? $0.dependencies : [$0]
        }.compactMap { ($0 as? AsyncOperation)?.observationID }
    }
}

/// Identifies an operation in its events, and nothing else. Unique in a process.
///
/// An operation is given one with its first event, or when its ``AsyncOperation/observationID`` is first read, in ascending order.
public struct OperationID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number, which no other operation of the process has.
    public let number: UInt64

    /// Creates an identifier for an operation that is not observed, to make an entry of a timeline by hand.
    ///
    /// Operations are given the numbers from 1 on, so don't mix both in one timeline.
    ///
    /// - Parameter number: Any number that no other entry of the timeline has.
    public init(_ number: UInt64) {
        self.number = number
    }

    /// Creates an identifier from what an encoder has written: a number.
    public init(from decoder: any Decoder) throws {
        number = try decoder.singleValueContainer().decode(UInt64.self)
    }

    /// Writes the identifier as a number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }

    /// Whether an identifier was given before another one.
    public static func < (earlier: Self, later: Self) -> Bool { earlier.number < later.number }

    /// The number.
    public var description: String { "\(number)" }
}
