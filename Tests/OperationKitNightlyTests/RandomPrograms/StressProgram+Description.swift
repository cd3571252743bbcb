import Foundation
import OperationKit

extension StressProgram: CustomStringConvertible {
    /// A tree with a line for each operation and for each action, to read and to write a test from.
    var description: String {
        var lines = ["program of STRESS_SEED=\(seed)"]
        if start != .queue { lines.append("  start: \(start)") }
        if isExternalStock { lines.append("  the external dependency is a block operation") }
        if observation != .none { lines.append("  observation: \(observation)") }
        if !keepsReferences { lines.append("  references dropped") }
        lines += root.lines.map { "  " + $0 }
        lines += actions.enumerated().map { "  action \($0): \($1)" }
        return lines.joined(separator: "\n")
    }
}

extension StressNode: CustomStringConvertible {
    var description: String { lines.joined(separator: "\n") }

    fileprivate var lines: [String] {
        var head = "\(name): \(title)"
        if !after.isEmpty { head += ", after " + after.map { "n\($0)" }.joined(separator: " ") }
        if waitsForExternal { head += ", after the external dependency" }
        if !requires.isEmpty { head += ", requires " + requires.map { "n\($0)" }.joined(separator: " ") }
        if waitsForever { head += ", after something that never begins" }
        if dropsDependency { head += ", dependency removed" }
        if entry != .fresh { head += ", \(entry) when added" }
        if priority != .normal { head += ", priority \(priority.rawValue)" }
        return [head] + children.flatMap(\.lines).map { "  " + $0 }
    }

    private var title: String {
        switch work {
        case .leaf(let leaf):
            return "\(leaf.kind)" + (leaf.fails ? ", fails" : "") + (leaf.finishesTwice ? ", finishes twice" : "")
        case .compound(let compound), .gathering(let compound):
            return (isGathering ? "gathering" : "compound") + (compound.limit < 0 ? "" : ", limit \(compound.limit)")
                + (compound.policy == .continueAll ? "" : ", cancelRemaining")
                + (compound.prepares ? ", children from prepare()" : "")
        case .macro: return "macro"
        case .waterfall: return "waterfall"
        case .recovery: return "recovery"
        }
    }
}

extension StressAction: CustomStringConvertible {
    var description: String {
        let time =
            switch trigger {
            case .beforeStart: "before the start"
            case .inside(let id): "inside n\(id)"
            case .outside(let thread, let delay): "on thread \(thread) after \(delay) turns"
            }
        return time + ": \(effect)"
    }
}

extension StressAction.Effect: CustomStringConvertible {
    var description: String {
        switch self {
        case .cancel(let id): "cancel n\(id)"
        case .cancelWithReason(let id): "cancel n\(id) with a reason"
        case .finish(let id, let fails): "finish n\(id) with " + (fails ? "an error" : "success")
        case .pause(let id): "suspend n\(id), and resume it later"
        case .squeeze(let id, let limit): "limit n\(id) to 0, and later to \(limit)"
        case .cancelSuspended(let id): "suspend n\(id) and cancel it"
        case .add(let node, let id):
            "add to n\(id)" + node.lines.map { "\n      " + $0 }.joined()
        case .cancelTask: "cancel the task that awaits n0"
        case .cancelQueue: "cancel all operations of the current queue"
        case .useQueue: "put an operation on the current queue"
        case .depend(let id, let source):
            "make n\(id) depend on " + (source.map { "n\($0)" } ?? "the external dependency")
        case .addAgain(let id): "add n\(id) again"
        case .addCycle(let id, let isPair):
            "add to n\(id) " + (isPair ? "two that wait for each other" : "one that waits for it")
        case .describe(let id): "describe n\(id)"
        }
    }
}
