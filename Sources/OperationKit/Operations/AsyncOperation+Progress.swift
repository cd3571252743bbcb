public import Foundation

extension AsyncOperation: ProgressReporting {
    /// How far the operation has come: exactly 1 at its end. That of a composite never goes back.
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
    /// An operation without children sets the units of its own progress while it works; one that sets none goes from 0
    /// to 1 when it ends. The progress of a composite is computed from those of its children, by their weights, at any
    /// depth; units that are set on it are ignored. A child counts in full once it has finished. Adding children never
    /// lowers the fraction: it stays as it is until the actual value exceeds it.
    ///
    /// When an operation ends, in whatever way, its progress is complete before `asyncCompletionBlock` is called,
    /// because no work is left. Whether it failed or was cancelled is in ``error`` and `isCancelled`.
    ///
    /// Cancelling the progress cancels the operation. The progress is created when it is first read, which is allowed
    /// at any time, on any thread.
    ///
    /// You can make the progresses of several operations children of a progress of your own, and a progress of your own
    /// a child of a leaf's progress. When the leaf ends, its progress is complete, and no longer counts a child that is
    /// not.
    ///
    /// ## Linux
    ///
    /// `Progress` has no lock there. The library serializes its own changes and the units that you set through this
    /// property, so operations below one progress may work and finish at the same time. Beyond that:
    ///
    /// - Put the tree together before the operations start.
    /// - Change the units of one leaf, and of what you put below it, on one thread at a time. Of several leaves below one progress of
    ///   yours, only one may have a progress of yours below it that changes while the others work.
    /// - Don't make it the current one (`becomeCurrent(withPendingUnitCount:)`): what is counted when you resign it comes too late at the
    ///   end, and composites don't notice it. Use `addChild(_:withPendingUnitCount:)`.
    /// - Don't cancel or read a progress of your own while operations below it run. The progress of a ``CompoundOperation`` of
    ///   these operations can be read at any time.
    /// - Don't call `pause()` or `resume()` while what you have put below the progress works.
    ///
    /// Composites around a leaf take notice of a progress of your own below it only when the leaf changes its own
    /// units, or ends.
    public final var progress: Progress {
        let (known, hasOutcome) = withState { ($0.progress, $0.lifecycle.outcome != nil) }
        if let known { return known }
        let new = OperationProgress(of: self, unitCount: children?.unitCount ?? 1)
        if hasOutcome { new.complete(unitCount: nil) }
        let (progress, isNew) = withState { state in
            // Another thread may have asked at the same time, or have ended the operation.
            let isNew = state.progress == nil && (state.lifecycle.outcome != nil) == hasOutcome
            if isNew { state.progress = new }
            return (state.progress, isNew)
        }
        guard let progress else { return self.progress }
        if isNew, !hasOutcome { startReportingProgress() }
        return progress
    }

    /// Publishes how far the operation has come, and reports it to its parent.
    ///
    /// - Parameters:
    ///   - fraction: The completed fraction of the work, from 0 to 1.
    ///   - unitCount: The total of a composite.
    func progressed(to fraction: Double, of unitCount: Int64 = OperationProgress.fineUnitCount) {
        var unitCount = unitCount
        var next: CompositeFraction? = (self, fraction)
        while let (operation, fraction) = next {
            let (progress, parent) = operation.withState { ($0.progress, $0.parent) }
            if operation.isComposite { progress?.publish(fraction, of: unitCount) }
            next = parent?.childProgressed(operation, to: fraction)
            unitCount = OperationProgress.fineUnitCount
        }
    }
}

extension Operation {
    /// Called when the progress of a composite is first read. From then on, all composites inside it report their
    /// progress, too: first how far they have come, from the innermost on.
    func startReportingProgress() {
        var open = [self]
        var composites: [(operation: AsyncOperation, children: any ChildGroup)] = []
        while let operation = open.popLast() {
            guard let operation = operation as? AsyncOperation, let children = operation.children else { continue }
            composites.append((operation, children))
            open += children.startReportingProgress()
        }
        while let (operation, children) = composites.popLast() {
            if composites.isEmpty { return operation.progressed(to: children.fraction, of: children.unitCount) }
            _ = operation.parent?.childProgressed(operation, to: children.fraction)
        }
    }
}

extension AsyncOperation: ProgressOwner {
    func unitsChanged(to fraction: Double) { progressed(to: fraction) }

    var weightedUnits: OperationProgress.Units? { children?.weightedUnits }

    var progressDescription: String? { children?.progressDescription }
}
