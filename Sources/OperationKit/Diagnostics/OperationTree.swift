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

    private(set) var lines: [Line] = []

    var text: String {
        lines.map { String(repeating: "  ", count: $0.depth) + $0.text }.joined(separator: "\n")
    }

    /// What is still to be described, in a list instead of on the stack: compounds may be nested to any depth.
    private enum Entry {
        case operation(Operation, name: String?, of: ChildSnapshot?, ChildSnapshot.Stage)
        case omitted(Int)
    }

    /// Takes one snapshot of each composite, and asks the operations without any lock.
    init(_ root: AsyncOperation, at now: ContinuousClock.Instant) {
        var open: [(entry: Entry, depth: Int)] = [(.operation(root, name: nil, of: nil, .waiting), 0)]
        while let (entry, depth) = open.popLast() {
            guard lines.count < OperationTree.length - 1 else {
                lines.append(Line(depth: depth, text: "… and more"))
                break
            }
            switch entry {
            case .omitted(let count):
                lines.append(Line(depth: depth, text: "… and \(count) more"))
            case .operation(let operation, let name, let parent, let stage):
                let snapshot = (operation as? AsyncOperation)?.ownChildren?.snapshot(atMost: OperationTree.width)
                let line = OperationSummary(operation, name: name, remarks: snapshot?.summary ?? [], at: now) { wait in
                    ChildSnapshot.reason(
                        stage, wait: wait, isReady: stage != .queued || operation.isReady,
                        blockedReason: parent == nil ? .notStarted : parent?.blockedReason)
                }
                lines.append(Line(depth: depth, text: line.text))
                guard let snapshot else { continue }
                if snapshot.omitted > 0 { open.append((.omitted(snapshot.omitted), depth + 1)) }
                for child in snapshot.children.reversed() {
                    let name = child.operation.displayName(at: child.index)
                    open.append((.operation(child.operation, name: name, of: snapshot, child.stage), depth + 1))
                }
            }
        }
    }
}
