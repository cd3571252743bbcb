import Foundation

extension ChildSchedule {
    /// Where a child stands.
    enum Phase {
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

    /// A few dozen bytes for each child, so the large ones come first, and counts are no larger than they have to be.
    struct Record {
        var ordinal = 0
        var dependents: [Int] = []
        /// Twice the number of the last search that came here, and one more once it was through with everything behind.
        var search = 0
        /// How many of those that it depends on have not ended.
        var open: Int32 = 0
        /// How many of these are operations outside.
        var openOutside: Int32 = 0
        var phase: Phase = .free
        /// Whether all dependencies are counted, so that the child may become ready.
        var isKnown = false
        /// Whether the dependencies of the child do not matter any more, because of its own state: it was cancelled by
        /// itself, for example.
        var isReleased = false
        var priority: Operation.QueuePriority = .normal
    }
}
