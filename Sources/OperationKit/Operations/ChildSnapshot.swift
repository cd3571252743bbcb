import Foundation

/// The children of a composite that have not ended, as they were at one moment: for descriptions.
struct ChildSnapshot: Sendable {
    struct Child: Sendable {
        let operation: Operation
        let index: Int
        let stage: Stage
    }

    /// How far a child has come.
    enum Stage: Sendable {
        /// It waits for what it depends on, or is not known to be ready yet.
        case waiting
        /// It can start. What it depends on does not matter any more.
        case ready
        /// Handed to the operation queue, which starts it when the operation says that it is ready.
        case queued
        /// It has been started, which its own state may not show yet.
        case started
    }

    /// Why no further child starts.
    enum BlockedReason: Equatable, Sendable {
        case notStarted, suspended, cancelling
        case limit(Int)
    }

    /// First those that have started, then the others, both in the order in which they were added.
    var children: [Child]
    /// How many others have not ended.
    var omitted: Int
    /// Remarks on all children together.
    var summary: [String]
    var blockedReason: BlockedReason?
}
