import OperationKitTestSupport

/// A random workload as a value: a tree of operations, and what is done to them, when and from where.
///
/// ``ProgramGenerator`` makes one from a seed, ``ProgramRun`` runs it, ``ProgramOracle`` judges what happened, and
/// ``Shrinker`` makes it smaller.
struct StressProgram: Equatable, Sendable {
    var seed: UInt64 = 0
    /// A compound.
    var root: StressNode
    var actions: [StressAction] = []
    var start = StressStart.queue
    /// Whether the test holds the operations until the end. If not, only the library and Foundation do.
    var keepsReferences = true
    /// Whether the external dependency is a `BlockOperation`.
    var isExternalStock = false
    var observation = StressObservation.none
}

/// Whose events are written down.
enum StressObservation: CaseIterable, Sendable {
    case none
    /// Those of the root and of all that is inside it, which has an observer from its creation to its end.
    case root
    /// Those of each operation, which has an observer of its own, from its creation on.
    case each
}

/// How the root is started.
enum StressStart: CaseIterable, Sendable {
    case queue
    /// On a thread.
    case byHand
    /// By a task that awaits `OperationQueue.run(_:)`.
    case task
    /// By a task that awaits an `OperationCoordinator`.
    case coordinator

    /// Whether a task awaits the root.
    var isAwaited: Bool { self == .task || self == .coordinator }
}

/// One operation, or one job of a waterfall.
struct StressNode: Equatable, Sendable {
    /// Unique in the program; the root is 0. The operation is called “n” and this number.
    let id: Int
    var work: StressWork
    /// Those among its siblings that it depends on.
    var after: [Int] = []
    /// Whether it depends on an operation that is no child of anything and ends some time.
    var waitsForExternal = false
    var priority: Operation.QueuePriority = .normal
    var entry = StressEntry.fresh
    /// Whether it depends on an operation that never begins. It has to be cancelled by itself then.
    var waitsForever = false
    /// Whether a dependency on an operation that never begins was removed before the addition.
    var dropsDependency = false
    /// Those among its siblings, or beside those that it is inside of, whose success it requires. They know whether they succeeded, which operations of
    /// Foundation do not that are cancelled while they run.
    var requires: [Int] = []

    var name: String { "n\(id)" }

    /// The name without what was added to it.
    static func name(in text: String) -> String {
        text.firstIndex(of: " ").map { text.hasPrefix("n") ? String(text[..<$0]) : text } ?? text
    }
}

/// The state of a child when it is added, or of a step when it becomes one.
enum StressEntry: CaseIterable, Sendable {
    case fresh
    case cancelled
    /// Another thread cancels it, during the addition or later.
    case cancelledMeanwhile
    /// It has been started by hand.
    case running, finished

    /// Whether it is cancelled by itself.
    var isCancelled: Bool { self == .cancelled || self == .cancelledMeanwhile }

    /// Whether it is started by hand.
    var isStarted: Bool { self == .running || self == .finished }
}

indirect enum StressWork: Equatable, Sendable {
    case leaf(StressLeaf)
    case compound(StressCompound)
    /// A `MacroOperation`; the steps are leaves.
    case macro([StressNode])
    /// A `Waterfall`; its jobs are leaves. Those that are `.block` or `.throwing` are closures that make a value.
    case waterfall([StressNode])
    /// What `recoverRun` makes of a leaf; its closure makes the second one.
    case recovery(StressNode, StressNode)
    /// What `gathered()` makes of leaves.
    case gathering(StressCompound)
}

struct StressLeaf: Equatable, Sendable {
    enum Kind: CaseIterable, Sendable {
        /// A `BlockOperation`, which cannot fail.
        case block
        /// A `ThrowingBlockOperation`.
        case throwing
        /// An `AsyncBlockOperation` that finishes in its block, on another thread, or by a queue.
        case inline, hopping, later
        /// An `AsyncBlockOperation` that releases its `finish` without calling it, in its block or on another thread.
        case losing
        /// An asynchronous operation of another library, which cannot fail.
        case foreign
        /// A `TaskOperation`.
        case task
        /// An `AsyncOperation` or `AsyncBlockOperation` that ends as soon as it is cancelled.
        case stoppable
        /// The same, but it ends with a lock of its own held, which `didCancel()` takes, too. It cannot fail.
        case guarded
        /// A `TaskOperation` that awaits such an operation on a queue, or in a coordinator, or a collection run.
        case awaiting
    }

    var kind: Kind
    var fails = false
    var finishesTwice = false
}

struct StressCompound: Equatable, Sendable {
    var limit = -1
    var policy = FailurePolicy.continueAll
    /// Whether `prepare()` adds the children, and not `init`.
    var prepares = false
    var children: [StressNode]
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
        /// Cancels the task that awaits the root.
        case cancelTask
        /// Cancels all operations of the queue that this leaf runs on.
        case cancelQueue(Int)
        /// Puts an operation on the queue that this leaf runs on.
        case useQueue(Int)
        /// Adds a dependency on a sibling, or on the external dependency, whatever the operation is doing by then.
        case depend(Int, on: Int?)
        /// Adds a child to its compound again.
        case addAgain(Int)
        /// Adds two operations that depend on each other, or one that depends on the compound.
        case addCycle(to: Int, isPair: Bool)
        /// Asks for the description.
        case describe(Int)
    }

    var trigger: Trigger
    var effect: Effect
}

extension StressAction.Effect {
    /// The operation that it concerns.
    var target: Int {
        switch self {
        case .cancel(let id), .cancelWithReason(let id), .finish(let id, _), .pause(let id), .squeeze(let id, _),
            .cancelSuspended(let id), .add(_, let id), .cancelQueue(let id), .useQueue(let id), .depend(let id, _),
            .addAgain(let id), .addCycle(let id, _), .describe(let id):
            id
        case .cancelTask: 0
        }
    }

    /// Another operation that it needs.
    var source: Int? { if case .depend(_, let id) = self { id } else { nil } }

    /// Whether it may keep its target, or what is inside it, from running.
    var interrupts: Bool {
        switch self {
        case .cancel, .cancelWithReason, .finish, .cancelSuspended, .cancelTask: true
        case .pause, .squeeze, .add, .cancelQueue, .useQueue, .depend, .addAgain, .addCycle, .describe:
            false
        }
    }
}

extension StressNode {
    /// What is directly inside.
    var children: [StressNode] {
        switch work {
        case .leaf: []
        case .compound(let compound), .gathering(let compound): compound.children
        case .macro(let steps), .waterfall(let steps): steps
        case .recovery(let source, let made): [source, made]
        }
    }

    /// The node and all that is inside it.
    var subtree: [StressNode] { [self] + children.flatMap(\.subtree) }

    /// Those among its siblings that have to end before it begins.
    var awaited: [Int] { after + requires }

    var leaf: StressLeaf? { if case .leaf(let leaf) = work { leaf } else { nil } }
    var compound: StressCompound? { if case .compound(let compound) = work { compound } else { nil } }

    /// Those of a compound, or of leaves that are gathered.
    var limitedChildren: StressCompound? {
        switch work {
        case .compound(let compound), .gathering(let compound): compound
        case .leaf, .macro, .waterfall, .recovery: nil
        }
    }

    var isRecovery: Bool { if case .recovery = work { true } else { false } }
    var isGathering: Bool { if case .gathering = work { true } else { false } }

    /// Whether the leaves inside are typed operations, and so is what is around them.
    var hasSteps: Bool {
        switch work {
        case .macro, .waterfall, .recovery, .gathering: true
        case .leaf, .compound: false
        }
    }

    /// Whether the steps follow each other, each only after some ends of the one before.
    var isChain: Bool {
        switch work {
        case .macro, .waterfall, .recovery: true
        case .leaf, .compound, .gathering: false
        }
    }
}

extension StressLeaf {
    /// Whether it ends as soon as it is cancelled.
    var stops: Bool { kind == .stoppable || kind == .guarded }

    /// Whether its work is done in a task.
    var isTask: Bool { kind == .task || kind == .awaiting }

    /// How it ends by itself, if it can fail.
    func outcome(of id: Int) -> StressOutcome {
        kind == .losing ? .lost(id) : fails ? .failed(id) : .success
    }

    /// Whether it is no `AsyncOperation`, where it is no step.
    var isStock: Bool { kind == .block || kind == .foreign }
}

extension StressProgram {
    /// Whether operations depend on an operation that is no child of anything, and ends some time.
    var needsOutside: Bool {
        nodes.contains(where: \.waitsForExternal)
            || actions.contains { if case .depend(_, nil) = $0.effect { true } else { false } }
    }

    /// The nodes that are added while the program runs, and to which compound.
    var additions: [(action: Int, node: StressNode, target: Int)] {
        actions.indices.compactMap { index in
            if case .add(let node, let target) = actions[index].effect { (index, node, target) } else { nil }
        }
    }

    /// All nodes, those that are added included.
    var nodes: [StressNode] { root.subtree + additions.flatMap(\.node.subtree) }
}
