import Foundation
public import OperationKit

/// An observer that records what happens to operations, as an ``OperationTimeline``.
///
/// ```swift
/// let recorder = OperationTimelineRecorder()
/// let sync = CompoundOperation(name: "sync", operations: [ThrowingBlockOperation { /* … */ }])
/// sync.addObserver(recorder)
/// try? await OperationQueue().run(sync)
/// print(recorder.timeline.text(columns: 80))
/// ```
///
/// Add it to a composite with ``/OperationKit/AsyncOperation/addObserver(_:)``, before or after its start, or to all operations of
/// the process with ``/OperationKit/AsyncOperation/addGlobalObserver(_:)``. It records that operation and all that is inside it, as
/// far as these are ``/OperationKit/AsyncOperation``s. Operations are not kept alive, but their identifiers, names and errors'
/// descriptions are remembered, of which at most 1,000 bytes each.
///
/// A million operations with short names take about 150 megabytes. Above the maximum, operations are only counted,
/// when they finish: ``OperationTimeline/droppedCount``. Of one operation, the first hundred waits and the first hundred
/// retries are kept; of all, eight dependencies for each operation that there may be.
///
/// Recording an event takes time linear in what the operation depends on, at most, and the threads that do it at the same time wait for
/// each other only as long as a few numbers are written, or a table of identifiers grows.
public final class OperationTimelineRecorder: OperationObserver {
    private let start = ContinuousClock.now
    private let startDate = Date()
    private let rows: Locked<TimelineRows>

    /// Creates a recorder that has recorded nothing.
    ///
    /// - Parameter maximumCount: How many operations are recorded. The others are counted.
    /// - Precondition: The maximum is above 0, and less than 2³¹ − 1.
    public init(maximumCount: Int = 1_000_000) {
        precondition(
            maximumCount > 0 && maximumCount < Int(Int32.max),
            "OperationKit: a timeline cannot be made for \(maximumCount) operations")
        rows = Locked(TimelineRows(maximumCount: maximumCount))
    }

    /// What was recorded up to now. It begins with the first event.
    ///
    /// May be read at any time, on any thread, also inside a method of an observer. Operations that have not finished
    /// are drawn up to this moment. Only the next event waits, while what is known is copied.
    ///
    /// Complexity: O(n log n) in the recorded operations.
    public var timeline: OperationTimeline {
        rows.withLock { $0 }.timeline(startDate: startDate, now: (ContinuousClock.now - start).nanoseconds)
    }

    /// Records an event. Called by the operations that the recorder observes; don't call this method yourself.
    ///
    /// - Parameters:
    ///   - operation: The operation, which is asked what it depends on and what it is inside of.
    ///   - event: What has happened.
    public func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        let facts = ObservedFacts(of: operation, at: event.kind)
        // An event may have happened before the recorder was created, and be delivered afterwards.
        rows.withLock { $0.record(event, facts, at: max(0, (event.time - start).nanoseconds)) }
    }
}

/// What an operation is asked when an event of it is recorded, without a lock: overrides may be called.
struct ObservedFacts {
    let type: AsyncOperation.Type
    let isComposite: Bool
    var parent: OperationID?
    var dependencies: [OperationID] = []
    var resources: [String] = []
    var limit: Int?
    var error = ""
    /// `nil` for success.
    var outcome: OperationTimeline.Outcome?

    init(of operation: AsyncOperation, at kind: OperationEvent.Kind) {
        type = Swift.type(of: operation)
        isComposite = operation.consistsOfOperations
        limit = operation.childLimit
        // The steps of a macro move to another one that continues it, and what happens later may be seen first.
        parent = operation.enclosingComposite?.observationID
        if case .added(let composite, _) = kind { parent = composite }
        switch kind {
        case .added, .started, .cancelled:
            dependencies = operation.observedDependencies
        case .running:
            resources = operation.leasedResourceNames
        case .retrying(_, let error, _): self.error = error.eventText
        case .finished(let error): outcome = error.map { .init($0, hasRun: operation.hasReachedMain) }
        case .waiting: break
        }
    }
}

extension OperationTimeline.Outcome {
    /// The outcome of an operation that finished with an error. One that has run may end with that of another one, which did not run.
    init(_ error: any Error, hasRun: Bool) {
        switch error {
        case _ where error.isCancellation: self = .cancelled
        case DependencyError.dependencyFailed where !hasRun: self = .skipped(error.eventText.shortened)
        default: self = .failed(error.eventText.shortened)
        }
    }
}

/// What a recorder knows of operations, in about a hundred bytes for each.
///
/// A copy can be taken with a lock held, and read without it.
struct TimelineRows: Sendable {
    /// Nanoseconds since the recorder was created.
    typealias Time = Int64

    /// How many dependencies are kept of all operations, for each one that there may be.
    private static let dependenciesEach = 8

    private let maximumCount: Int
    private var rows: [TimelineRow] = []
    private var places: [OperationID: Int32] = [:]
    private var dependencyCount = 0
    /// How many operations have finished that there was no row for.
    private var droppedCount = 0

    init(maximumCount: Int) {
        self.maximumCount = maximumCount
    }

    /// Records an event.
    mutating func record(_ event: OperationEvent, _ facts: ObservedFacts, at time: Time) {
        guard let place = place(of: event, facts) else {
            if case .finished = event.kind { droppedCount += 1 }
            return
        }
        addDependencies(facts.dependencies, at: place)
        rows[place].record(event, facts, at: time)
    }

    /// The place of the row of an operation, which is added if there is none; `nil` if there is no room for it.
    private mutating func place(of event: OperationEvent, _ facts: ObservedFacts) -> Int? {
        if let place = places[event.operation] { return Int(place) }
        guard rows.count < maximumCount else { return nil }
        places[event.operation] = Int32(rows.count)
        rows.append(TimelineRow(id: event.operation, type: facts.type))
        return rows.count - 1
    }

    private mutating func addDependencies(_ ids: [OperationID], at place: Int) {
        if ids.isEmpty || ids == rows[place].dependencies { return }
        let known = Set(rows[place].dependencies)
        for id in ids where !known.contains(id) && dependencyCount / Self.dependenciesEach < maximumCount {
            rows[place].dependencies.append(id)
            dependencyCount += 1
        }
    }

    /// The timeline, which begins with the first event.
    ///
    /// - Parameters:
    ///   - startDate: The date of the time 0 of the rows.
    ///   - now: The end, if something has not finished.
    /// - Returns: The timeline.
    func timeline(startDate: Date, now: Time) -> OperationTimeline {
        let origin = rows.lazy.compactMap(\.firstTime).min() ?? now
        let entries = rows.map { $0.entry(since: origin) }
        return OperationTimeline(
            checked: entries, startDate: startDate.addingTimeInterval(Double(origin) / 1e9),
            duration: entries.contains(where: \.isUnfinished) ? .nanoseconds(max(0, now - origin)) : .zero,
            droppedCount: droppedCount)
    }
}

/// What a recorder knows of one operation.
private struct TimelineRow: Sendable {
    typealias Time = TimelineRows.Time

    /// The time of what has not happened.
    private static let never = Time.min
    /// How many waits, and how many retries, are kept: the first ones.
    private static let mostDetails = 100

    /// What most operations don't have.
    struct Details: Sendable {
        var cancelled = never
        var waits: [(reason: String, from: Time, to: Time)] = []
        var retries: [(attempt: Int, error: String, time: Time, delay: Duration)] = []
        var resources: [String] = []
        /// Of an operation that did not succeed.
        var outcome: OperationTimeline.Outcome?
        var limit: Int?
    }

    let id: OperationID
    let type: AsyncOperation.Type
    var name = ""
    var parent: OperationID?
    var added = never
    var started = never
    var running = never
    var finished = never
    var dependencies: [OperationID] = []
    var isComposite = false
    /// One element, or none.
    var storedDetails: [Details] = []

    private var details: Details {
        get { storedDetails.first ?? Details() }
        _modify {
            if storedDetails.isEmpty { storedDetails.append(Details()) }
            yield &storedDetails[0]
        }
    }

    /// Records an event. The first addition counts.
    mutating func record(_ event: OperationEvent, _ facts: ObservedFacts, at time: Time) {
        isComposite = facts.isComposite
        // It may be changed at any time, in `prepare()` for example.
        if details.limit != facts.limit { details.limit = facts.limit }
        // A request with a bound input is given its name late.
        name = event.name.shortened
        parent = facts.parent ?? parent
        switch event.kind {
        case .added: if added == Self.never { added = time }
        case .started:
            started = time
        case .waiting(let reason):
            endWait(at: time)
            if details.waits.count < Self.mostDetails { details.waits.append((reason.shortened, time, Self.never)) }
        case .running:
            endWait(at: time)
            // Later ones come after a sleep.
            if running == Self.never { running = time }
            if !facts.resources.isEmpty { details.resources = facts.resources.map(\.shortened) }
        case .cancelled: details.cancelled = time
        case .retrying(let attempt, _, let delay):
            if details.retries.count < Self.mostDetails {
                details.retries.append((attempt, facts.error.shortened, time, delay))
            }
        case .finished:
            endWait(at: time)
            finished = time
            if let outcome = facts.outcome { details.outcome = outcome }
        }
    }

    private mutating func endWait(at time: Time) {
        if storedDetails.first?.waits.last?.to == Self.never { details.waits[details.waits.count - 1].to = time }
    }

    var firstTime: Time? {
        ([added, started, running, finished, details.cancelled] + details.waits.map(\.from)
            + details.retries.map(\.time)).filter { $0 != Self.never }.min()
    }

    /// The entry of a timeline that begins at a time.
    func entry(since origin: Time) -> OperationTimeline.Entry {
        func duration(_ time: Time) -> Duration? {
            time == Self.never ? nil : .nanoseconds(max(0, time - origin))
        }
        let details = details
        return OperationTimeline.Entry(
            id: id, name: name, typeName: type.typeTitle, parent: parent, added: duration(added),
            started: duration(started), running: duration(running), cancelled: duration(details.cancelled),
            finished: duration(finished),
            waits: details.waits.map {
                .init(reason: $0.reason, from: duration($0.from) ?? .zero, to: duration($0.to))
            },
            retries: details.retries.map {
                .init(attempt: $0.attempt, error: $0.error, time: duration($0.time) ?? .zero, delay: $0.delay)
            },
            outcome: finished == Self.never ? nil : details.outcome ?? .success, dependencies: dependencies,
            resources: details.resources, isComposite: isComposite, limit: details.limit)
    }
}

extension String {
    /// How many bytes of a text are kept.
    private static let most = 1_000

    /// The text, or its beginning if it is too long.
    var shortened: String {
        if utf8.count <= Self.most { return self }
        var length = "…".utf8.count
        let beginning = unicodeScalars.prefix { scalar in
            length += UTF8.width(scalar)
            return length <= Self.most
        }
        return String(beginning) + "…"
    }
}
