import Foundation

/// An operation, its children, their children and so on, as lines of text.
struct OperationTree {
    /// How many children of one composite there are lines for.
    static let width = 100
    /// How many lines there are in all.
    static let length = 500

    private(set) var lines: [String] = []
    private var waits: WaitDescriptions
    /// How deep the operation is that is being described.
    private var depth = 0
    /// What adds further lines, the next one last: in a list instead of on the stack, because compounds may be nested to any depth.
    private var open: [(depth: Int, describe: (inout OperationTree) -> Void)] = []

    var text: String { lines.joined(separator: "\n") }

    /// Takes one snapshot of each composite, and asks the operations without any lock.
    init(_ root: AsyncOperation, at now: ContinuousClock.Instant) {
        waits = WaitDescriptions(at: now)
        describe(root) { root.reasonNotStarted($0) }
        describeOpen()
    }

    /// Takes one snapshot of the queue and each composite on it, and asks the operations without any lock.
    init(_ queue: OperationQueue, at now: ContinuousClock.Instant) {
        waits = WaitDescriptions(at: now)
        let snapshot = QueueSnapshot(queue)
        addLine(snapshot.text)
        let shown = snapshot.operations.prefix(OperationTree.width)
        leaveOpen(shown, omitted: snapshot.operations.count - shown.count) { tree, operation in
            tree.describe(operation) {
                snapshot.reason(calling: "the queue", wait: $0, isReady: operation.isReady)
            }
        }
        describeOpen()
    }

    private mutating func describeOpen() {
        while let next = open.popLast() {
            depth = next.depth
            guard lines.count < OperationTree.length - 1 else { return addLine("… and more") }
            next.describe(&self)
        }
    }

    private mutating func addLine(_ text: String) {
        lines.append(String(repeating: "  ", count: depth) + text.onOneLine)
    }

    /// Leaves what is inside the current operation for later, or is on the queue.
    private mutating func leaveOpen<Part>(
        _ parts: some BidirectionalCollection<Part>, omitted: Int,
        describe: @escaping (inout OperationTree, Part) -> Void
    ) {
        if omitted > 0 { open.append((depth + 1, { $0.addLine("… and \(omitted) more") })) }
        for part in parts.reversed() { open.append((depth + 1, { describe(&$0, part) })) }
    }

    /// Describes an operation, and leaves what is inside it open.
    private mutating func describe(_ operation: Operation, name: String? = nil, reason: (_ wait: String?) -> String?) {
        let snapshot = operation.ownChildren?.snapshot(atMost: OperationTree.width)
        let line = operation.summary(name: name, remarks: snapshot?.summary ?? [], at: waits.now) {
            reason(waits.text(for: operation))
        }
        addLine(line)
        guard let snapshot else { return }
        leaveOpen(snapshot.children, omitted: snapshot.omitted) { tree, child in
            tree.describe(child.operation, name: child.operation.displayName(at: child.index)) { wait in
                ChildSnapshot.reason(
                    child.stage, wait: wait, isReady: child.stage != .queued || child.operation.isReady,
                    readyText: snapshot.readyText)
            }
        }
    }
}

extension ChildSnapshot {
    /// Says why a child that waits for other operations or not has not started, if there is something to say.
    static func reason(_ stage: Stage, wait: String?, isReady: Bool, readyText: String?) -> String? {
        switch stage {
        case .started: "starting"
        case .waiting where wait != nil, .queued where wait != nil: wait
        case .queued where !isReady: "not ready by itself"
        case .waiting where readyText != nil: "about to become ready"
        default: readyText
        }
    }
}

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
    func reason(calling queue: String, wait: String?, isReady: Bool) -> String {
        if let wait { return wait }
        if !isReady { return "not ready by itself" }
        if isSuspended { return "ready, but \(queue) is suspended" }
        if let limit, executingCount >= limit { return "ready, but the limit of \(limit) of \(queue) is reached" }
        return "ready, waiting for a thread of \(queue)"
    }

    /// What there is to say of the queue itself.
    var text: String {
        let count = operations.count
        let parts = [
            isSuspended ? "suspended" : nil, limit.map { "limit \($0)" },
            count == 0 ? "no operations" : count == 1 ? "1 operation" : "\(count) operations",
        ]
        return "queue “\(name)”: " + parts.compactMap(\.self).joined(separator: ", ")
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
        let begun = Set(executing.map(ObjectIdentifier.init))
        operations = executing + unfinished.filter { !begun.contains(ObjectIdentifier($0)) }
        executingCount = executing.count
    }
}

extension AsyncOperation {
    /// Says why an operation has not started. Of a child, only the composite knows that.
    fileprivate func reasonNotStarted(_ wait: String?) -> String? {
        if let wait { return wait }
        if let composite = enclosingComposite { return "not started, inside “\(composite.displayName)”" }
        if let queue = KnownQueues.shared.queue(of: self) {
            let snapshot = QueueSnapshot(queue)
            return snapshot.reason(calling: "its queue “\(snapshot.name)”", wait: nil, isReady: isReady)
        }
        return ExecutionRecording.current == .off ? nil : "not started, on no known queue"
    }
}
