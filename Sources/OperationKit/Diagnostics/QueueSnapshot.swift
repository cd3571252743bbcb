import Foundation

/// An operation queue as it was at one moment: what it has not finished, and why it starts nothing.
struct QueueSnapshot {
    let name: String
    let isSuspended: Bool
    /// How many operations it may execute at the same time, if it has a limit.
    let limit: Int?
    /// First those that are executing; both these and the others in the order in which they were added.
    let operations: [Operation]
    let executingCount: Int

    /// Says why an operation of the queue has not started.
    ///
    /// - Parameters:
    ///   - queue: How the text calls the queue.
    ///   - wait: What the operation waits for, if it does.
    ///   - isReady: What the operation says itself.
    /// - Returns: The reason.
    func reason(calling queue: String, wait: DependencyChainDescription?, isReady: Bool) -> String {
        if let wait { return wait.text }
        if !isReady { return "not ready by itself" }
        if isSuspended { return "ready, but \(queue) is suspended" }
        if let limit, executingCount >= limit { return "ready, but the limit of \(limit) of \(queue) is reached" }
        return "ready, waiting for a thread of \(queue)"
    }

    /// What there is to say of the queue itself.
    var text: String {
        let count = operations.count
        let parts =
            (isSuspended ? ["suspended"] : []) + (limit.map { ["limit \($0)"] } ?? [])
            + [count == 0 ? "no operations" : count == 1 ? "1 operation" : "\(count) operations"]
        return "queue “\(name)”: " + parts.joined(separator: ", ")
    }
}

extension QueueSnapshot {
    /// Asks the queue and its operations, so nothing may be locked.
    ///
    /// Complexity: linear in the operations of the queue.
    init(_ queue: OperationQueue) {
        name = queue.displayName
        isSuspended = queue.isSuspended
        let limit = queue.maxConcurrentOperationCount
        self.limit = limit < 0 ? nil : limit
        let unfinished = queue.addedOperations.filter { !$0.isFinished }
        let executing = unfinished.filter(\.isExecuting)
        let begun = Set(executing.map { ObjectIdentifier($0) })
        operations = executing + unfinished.filter { !begun.contains(ObjectIdentifier($0)) }
        executingCount = executing.count
    }
}

extension AsyncOperation {
    /// Says why an operation has not started, if it is no child.
    ///
    /// - Parameter wait: What it waits for, if it does.
    /// - Returns: The reason, or `nil` if there is nothing to say but that it has not started.
    final func reasonNotStarted(_ wait: DependencyChainDescription?) -> String? {
        if wait != nil || withState({ $0.membership.parent }) != nil { return wait?.text }
        if let queue = KnownQueues.shared.queue(of: self) {
            let snapshot = QueueSnapshot(queue)
            return snapshot.reason(calling: "its queue “\(snapshot.name)”", wait: nil, isReady: isReady)
        }
        if case .off = ExecutionRecording.current { return nil }
        return "not started, on no known queue"
    }
}
