/// How far a child has come, from its addition to its end.
enum ChildPhase: Hashable {
    /// No child has this slot.
    case free
    /// Counted, but its addition is not complete: it does not start, and the composite does not end without it.
    case adding
    /// Added before the composite starts, which will read its dependencies then.
    case added
    /// Registered. Something that it depends on has not ended, or the composite has not started its children.
    case waiting
    /// Among those that can start.
    case ready
    /// A worker is inside `start()` of the child.
    case starting
    /// Running without a worker, and so without a place on the queue.
    case detached
    /// Handed to the operation queue, which starts it.
    case queued
    /// Ended. It keeps its place until the progress of the composite has been reported.
    case ending(ChildPlace?)
    /// It has ended before what it depends on, which still refers to its slot.
    case gone
    /// No child, but an operation that children wait for.
    case external

    /// The place that a child takes in this phase; `nil` if it takes none.
    var place: ChildPlace? {
        switch self {
        case .starting: .worker
        case .detached: .detached
        case .queued: .queue
        case .ending(let place): place
        case .free, .adding, .added, .waiting, .ready, .gone, .external: nil
        }
    }
}

/// The place that a child takes under the concurrency limit, from just before its start to its end.
enum ChildPlace: Hashable {
    /// It has a worker, which is inside its `start()`.
    case worker
    /// Its worker has left it: `start()` returned before its end.
    case detached
    /// It was handed to the operation queue, which counts it.
    case queue
}
