import Foundation
import OperationKit

/// A random workload as a value: a tree of operations, and what is done to them, when and by whom.
///
/// ``ProgramGenerator`` makes one from a seed, ``ProgramRun`` runs it, ``ProgramOracle`` judges what happened, and
/// ``Shrinker`` makes it smaller.
struct StressProgram: Equatable, Sendable {
    var seed: UInt64 = 0
    /// A compound.
    var root: StressNode
    var actions: [StressAction] = []
    /// Whether the root is started on a thread instead of being put on a queue.
    var startsByHand = false
    /// Whether somebody holds the operations until the end. If not, only the library and Foundation do.
    var keepsReferences = true
}

/// One operation, or one job of a waterfall.
struct StressNode: Equatable, Sendable {
    /// Unique in the program; the root is 0. The operation is called “n” and this number.
    let id: Int
    var work: StressWork
    /// Those among its siblings that it depends on.
    var after: [Int] = []
    /// Whether it depends on an operation that is no child of anything and ends some time.
    var waitsForOutside = false
    var priority: Operation.QueuePriority = .normal

    var name: String { "n\(id)" }
}

indirect enum StressWork: Equatable, Sendable {
    case leaf(StressLeaf)
    case compound(StressCompound)
    /// A `MacroOperation`; the steps are leaves.
    case macro([StressNode])
    /// A `Waterfall`; its jobs are leaves. Those that are `.block` or `.throwing` are closures that make a value.
    case waterfall([StressNode])
    case collection(StressCollection)
}

struct StressLeaf: Equatable, Sendable {
    enum Kind: CaseIterable, Sendable {
        /// A `BlockOperation`, which cannot fail.
        case block
        /// A `ThrowingBlockOperation`.
        case throwing
        /// An `AsyncBlockOperation` that finishes in its block, on another thread, or by a queue.
        case inline, hopping, later
        /// An asynchronous operation of another library, which cannot fail.
        case foreign
        /// A `TaskOperation`.
        case task
        /// An `AsyncOperation` that ends as soon as it is cancelled.
        case stoppable
    }

    var kind: Kind
    var fails = false
    var finishesTwice = false
}

struct StressCompound: Equatable, Sendable {
    var limit = -1
    var policy = CompoundOperation.FailurePolicy.continueAll
    /// Whether `prepare()` adds the children, and not `init`.
    var prepares = false
    var children: [StressNode]
}

struct StressCollection: Equatable, Sendable {
    var strategy: Strategy
    var limit = 2
    var policy = CompoundOperation.FailurePolicy.continueAll
    /// For each unit, an item or a batch of two, whether it fails.
    var units: [Bool]
    /// Whether the units end on another thread.
    var hops = false
    var completesTwice = false
}

/// Something that is done to an operation.
struct StressAction: Equatable, Sendable {
    enum Trigger: Equatable, Sendable {
        /// After the operations have been made, and before the start.
        case beforeStart
        /// When this leaf works, on its thread.
        case inside(Int)
        /// At any time, on a thread of its own, which does its actions in order, each after a delay.
        case outside(thread: Int, delay: Int)
    }

    enum Effect: Equatable, Sendable {
        case cancel(Int)
        case cancelWithReason(Int)
        case finish(Int, fails: Bool)
        /// Suspends a compound or a waterfall, and resumes it later on another thread.
        case pause(Int)
        /// Sets the limit of a compound to 0, and later on another thread to this one.
        case squeeze(Int, limit: Int)
        /// Suspends a compound, cancels it, and leaves it suspended.
        case cancelSuspended(Int)
        case add(StressNode, to: Int)
    }

    var trigger: Trigger
    var effect: Effect
}

extension StressAction.Effect {
    /// The operation that it concerns.
    var target: Int {
        switch self {
        case .cancel(let id), .cancelWithReason(let id), .finish(let id, _), .pause(let id), .squeeze(let id, _),
            .cancelSuspended(let id), .add(_, let id):
            id
        }
    }

    /// Whether it may keep its target, or what is inside it, from running.
    var interrupts: Bool {
        switch self {
        case .cancel, .cancelWithReason, .finish, .cancelSuspended: true
        case .pause, .squeeze, .add: false
        }
    }
}

extension StressNode {
    /// What is directly inside.
    var children: [StressNode] {
        switch work {
        case .leaf, .collection: []
        case .compound(let compound): compound.children
        case .macro(let steps), .waterfall(let steps): steps
        }
    }

    /// The node and all that is inside it.
    var subtree: [StressNode] { [self] + children.flatMap(\.subtree) }

    var leaf: StressLeaf? { if case .leaf(let leaf) = work { leaf } else { nil } }
    var compound: StressCompound? { if case .compound(let compound) = work { compound } else { nil } }

    /// Whether the steps follow each other.
    var isChain: Bool {
        switch work {
        case .macro, .waterfall: true
        case .leaf, .compound, .collection: false
        }
    }
}

extension StressProgram {
    /// The nodes that are added while the program runs, and to whom.
    var additions: [(action: Int, node: StressNode, target: Int)] {
        actions.indices.compactMap { index in
            if case .add(let node, let target) = actions[index].effect { (index, node, target) } else { nil }
        }
    }

    /// All nodes, those that are added included.
    var nodes: [StressNode] { root.subtree + additions.flatMap(\.node.subtree) }
}
