extension ChildSnapshot {
    /// Says why a child has not started.
    ///
    /// - Parameters:
    ///   - stage: How far the child has come.
    ///   - wait: What it waits for, if it does.
    ///   - isReady: What the operation says itself.
    ///   - blockedReason: Why no further child starts.
    /// - Returns: The reason, or `nil` if there is nothing to say.
    static func reason(
        _ stage: Stage, wait: DependencyChainDescription?, isReady: Bool, blockedReason: BlockedReason?
    ) -> String? {
        if let wait, stage == .waiting || stage == .queued { return wait.text }
        switch (stage, blockedReason) {
        case (.started, _): return "starting"
        case (.queued, _) where !isReady: return "not ready by itself"
        case (_, .notStarted): return nil
        case (.waiting, _): return "about to become ready"
        case (_, .suspended): return "ready, but the children are suspended"
        case (_, .cancelling): return "ready, but the children are being cancelled"
        case (_, .limit(let limit)): return "ready, but the limit of \(limit) is reached"
        case (_, nil): return "ready, waiting for a thread"
        }
    }
}
