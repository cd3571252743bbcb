/// Where a child stands.
enum ChildPhase {
    /// No child has this slot.
    case free
    /// Some of what it depends on has not ended, or is not known yet.
    case waiting
    /// Among those that may begin.
    case ready
    /// A worker is inside `start()` of the child.
    case starting
    /// Begun, and going on without a worker, and so without a place on the queue.
    case running
    /// Handed to the operation queue, which begins it.
    case queued
    /// It has ended before what it depends on, which still knows its slot.
    case gone
    /// No child, but an operation for which children wait.
    case outside
}
