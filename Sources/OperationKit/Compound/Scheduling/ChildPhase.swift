/// Where a child stands.
enum ChildPhase: Hashable {
    /// No child has this slot.
    case free
    /// Counted, but its addition is not complete: it does not start, and the composite does not end without it.
    case adding
    /// Added before the composite starts, which has not asked it what it depends on.
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

/// What a child that was started, or is about to be, counts as.
enum ChildPlace: Hashable {
    /// It has a worker.
    case worker
    /// It has none any more.
    case detached
    /// It takes a place on the operation queue.
    case queue
}
