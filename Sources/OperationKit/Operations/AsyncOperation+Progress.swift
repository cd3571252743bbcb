public import Foundation

extension AsyncOperation: ProgressReporting {
    /// How far the operation has come: from 0 to exactly 1 at its success, never going back.
    ///
    /// ```swift
    /// final class Copy: AsyncOperation, @unchecked Sendable {
    ///     override func main() {
    ///         progress.totalUnitCount = 10
    ///         for _ in 1...10 { progress.completedUnitCount += 1 }
    ///         finish()
    ///     }
    /// }
    /// ```
    ///
    /// A leaf sets the units of its own progress while it works. One that does not goes from 0 to 1 when it succeeds. A
    /// composite computes its progress from those of its parts, by their weights, at any depth; do not set its units. A
    /// part counts wholly once it has succeeded, and what a part that failed had reached stays. Where parts are added
    /// later, the fraction stands still until it is true again. When an operation succeeds, its progress is complete
    /// before `asyncCompletionBlock` is called.
    ///
    /// Cancelling the progress cancels the operation. It may be made a child of a progress of your own. Nothing is
    /// allocated before it is asked for; it may be asked for at any time, on any thread.
    ///
    /// On Linux, `Progress` has no lock: the units of one leaf are to be set by one thread at a time. There, a progress
    /// of your own that you make a child of a leaf's counts for the composites around it only when the leaf changes its
    /// own units, or succeeds.
    public final var progress: Progress {
        if let progress = withState({ $0.progress }) { return progress }
        let new = OperationProgress(of: self, isComposite: isComposite)
        let (progress, isNew, isComplete) = withState { state in
            let isNew = state.progress == nil
            let progress = state.progress ?? new
            state.progress = progress
            if case .success = state.lifecycle.outcome { return (progress, isNew, true) }
            return (progress, isNew, false)
        }
        // Another thread may have asked at the same time.
        guard isNew else { return progress }
        if isComplete {
            progress.complete(isComposite: isComposite)
        } else if isComposite {
            progressIsWanted()
            progress.publish(fractionOfChildren)
        }
        return progress
    }

    /// The operation has come so far: whoever it is part of is told.
    final func progressed(to fraction: Double) {
        let (progress, parent) = withState { ($0.progress, $0.membership.parent) }
        if isComposite { progress?.publish(fraction) }
        parent?.childProgressed(self, to: fraction)
    }
}
