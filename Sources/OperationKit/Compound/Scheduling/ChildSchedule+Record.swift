import Foundation

extension ChildSchedule {
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
        var phase: ChildPhase = .free
        /// Whether all dependencies are counted, so that the child may become ready.
        var isKnown = false
        /// Whether the dependencies of the child do not matter any more, because of its own state: it was cancelled by
        /// itself, for example.
        var isReleased = false
        var priority: Operation.QueuePriority = .normal
    }
}
