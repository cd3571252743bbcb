import Foundation

/// An operation, its children, their children and so on, as lines of text.
struct OperationTree {
    /// How many children of one composite there are lines for.
    static let width = 100
    /// How many lines there are in all.
    static let length = 500

    struct Line: Equatable {
        let depth: Int
        let text: String
    }

    /// Says why an operation has not started, from what it waits for.
    private typealias Reason = (_ operation: Operation, _ wait: DependencyChainDescription?) -> String?

    private(set) var lines: [Line] = []

    var text: String {
        lines.map { String(repeating: "  ", count: $0.depth) + $0.text }.joined(separator: "\n")
    }

    /// What is still to be described, in a list instead of on the stack: compounds may be nested to any depth.
    private enum Entry {
        case operation(Operation, name: String?, reason: Reason)
        case omitted(Int)
    }

    /// Takes one snapshot of each composite, and asks the operations without any lock.
    init(_ root: AsyncOperation, at now: ContinuousClock.Instant) {
        describe([(.operation(root, name: nil) { _, wait in root.reasonNotStarted(wait) }, 0)], at: now)
    }

    /// Takes one snapshot of the queue and each composite on it, and asks the operations without any lock.
    init(_ queue: OperationQueue, at now: ContinuousClock.Instant) {
        let snapshot = QueueSnapshot(queue)
        lines = [Line(depth: 0, text: snapshot.text)]
        let shown = snapshot.operations.prefix(OperationTree.width)
        var open: [(entry: Entry, depth: Int)] = shown.map { operation in
            let reason: Reason = { snapshot.reason(calling: "the queue", wait: $1, isReady: $0.isReady) }
            return (.operation(operation, name: nil, reason: reason), 1)
        }
        if shown.count < snapshot.operations.count {
            open.append((.omitted(snapshot.operations.count - shown.count), 1))
        }
        describe(open.reversed(), at: now)
    }

    /// Describes what is open, the last entry first, and all that is inside it.
    private mutating func describe(_ open: [(entry: Entry, depth: Int)], at now: ContinuousClock.Instant) {
        var open = open
        while let (entry, depth) = open.popLast() {
            guard lines.count < OperationTree.length - 1 else {
                lines.append(Line(depth: depth, text: "… and more"))
                break
            }
            switch entry {
            case .omitted(let count):
                lines.append(Line(depth: depth, text: "… and \(count) more"))
            case .operation(let operation, let name, let reason):
                let snapshot = (operation as? AsyncOperation)?.ownChildren?.snapshot(atMost: OperationTree.width)
                let line = OperationSummary(operation, name: name, remarks: snapshot?.summary ?? [], at: now) { wait in
                    reason(operation, wait)
                }
                lines.append(Line(depth: depth, text: line.text))
                guard let snapshot else { continue }
                if snapshot.omitted > 0 { open.append((.omitted(snapshot.omitted), depth + 1)) }
                for child in snapshot.children.reversed() {
                    let name = child.operation.displayName(at: child.index)
                    let reason: Reason = { operation, wait in
                        ChildSnapshot.reason(
                            child.stage, wait: wait, isReady: child.stage != .queued || operation.isReady,
                            blockedReason: snapshot.blockedReason)
                    }
                    open.append((.operation(child.operation, name: name, reason: reason), depth + 1))
                }
            }
        }
    }
}
