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
/// Recording an event takes constant time, and the threads that do it at the same time wait for each other only as
/// long as a few numbers are written, or a table of identifiers grows.
public final class OperationTimelineRecorder: OperationObserver {
    private let start = ContinuousClock.now
    private let startDate = Date()
    private let rows: Locked<TimelineRows>

    /// Creates a recorder that has recorded nothing.
    ///
    /// - Parameter maximumCount: How many operations are recorded. The others are counted.
    /// - Precondition: The maximum is above 0, and less than 2³¹.
    public init(maximumCount: Int = 1_000_000) {
        precondition(
            maximumCount > 0 && maximumCount < Int(Int32.max),
            "OperationKit: a timeline cannot be made for \(maximumCount) operations")
        rows = Locked(TimelineRows(maximumCount: maximumCount))
    }

    /// What was recorded up to now. It begins with the first event.
    ///
    /// May be read at any time, on any thread, also inside a method of an observer. Operations that have not finished
    /// are drawn up to this moment. Operations are not held up meanwhile.
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
        isComposite = operation.isComposite
        // The steps of a macro move to another one that continues it, and what happens later may be seen first.
        parent = operation.enclosingComposite?.observationID
        if case .added(let composite, _) = kind { parent = composite }
        switch kind {
        case .added, .started, .cancelled:
            dependencies = operation.dependencies.compactMap { ($0 as? AsyncOperation)?.observationID }
        case .running:
            resources = operation.heldResourceNames
            limit = (operation as? CompoundOperation)?.maxConcurrentOperationCount
            if let limit, limit < 0 { self.limit = nil }
        case .retrying(_, let error, _): self.error = error.eventText
        case .finished(let error): outcome = error.map(OperationTimeline.Outcome.init)
        case .waiting: break
        }
    }
}

extension OperationTimeline.Outcome {
    /// The outcome of an operation that finished with an error.
    init(_ error: any Error) {
        switch error {
        case _ where error.isCancellation: self = .cancelled
        case DependencyError.dependencyFailed: self = .skipped(error.eventText.shortened)
        default: self = .failed(error.eventText.shortened)
        }
    }
}
