import OperationKitTestSupport

/// A tree of operations with policies, as a value. Times are in microseconds.
struct PolicyNode: Sendable {
    enum Kind: Sendable {
        case inline, hopping, task, retriedTask, endless, endlessTask, losing, foreign
        case compound, gathering, macro, waterfall, workflow, retry, hedge, repetition, recovery

        /// Those with an input and an output, and what may be in a compound, too, the last one more often.
        static let leaves: [Kind] = [.inline, .hopping, .task, .retriedTask, .endless, .endlessTask, .losing, .foreign]
        static let composites: [Kind] = [
            .macro, .waterfall, .workflow, .retry, .hedge, .repetition, .recovery, .gathering, .compound, .compound,
            .compound,
        ]
        static let stepCount = 7
        var makesAttempts: Bool { self == .retry || self == .hedge || self == .repetition }
        /// Whether each attempt requests what the operation requires.
        var passesRequestToChildren: Bool { self == .retry || self == .repetition }
        var limitsChildren: Bool { self == .compound || self == .gathering }
    }

    let id: Int
    let kind: Kind
    var policies: [Policy] = []
    var children: [PolicyNode] = []
    /// How many children may run at the same time, or how many attempts there are at most.
    var limit = 1
    /// How often it fails: never, in each second attempt, or always.
    var failure = 0
    var cancelsRemaining = false
    var isCancelledBefore = false
    var dependsOnSibling = false
    /// Whether it requires the success of that sibling, too.
    var requiresSuccess = false
    var attemptTimeout: Int?
    var delay = 0
    /// From -1 to 1.
    var priority = 0
}

/// What an operation is given.
enum Policy: Sendable {
    enum Verdict: CaseIterable, Sendable { case satisfied, failed, skipped, throwing, cancelling, finishing }

    case timeout(Int)
    case resource(Int, within: Int?)
    case circuit
    case condition(Verdict, prerequisite: [PolicyNode])
}

/// What a thread does to the last operation that was made from a node, or to the queue.
struct PolicyAction: Sendable {
    enum Effect: Sendable {
        case cancel, cancelWithReason, finish, fail, limit(Int), suspend(Bool), describe, advance(Int), cancelTask
        /// Cancels all that is on the queue on which the work runs.
        case cancelQueue
        case drop(Int)
        case add(PolicyNode, isStarted: Bool)
    }

    /// After how much time of a thread of its own, or inside the work of which node, it is done.
    var thread: Int
    var spins: UInt64
    var inside: Int?
    /// Zero stands for the queue.
    var target: Int
    var effect: Effect
}

/// Several trees that need the same resources, and what is done to them.
struct PolicyProgram: Sendable {
    enum Start: Sendable { case queue, byHand, awaited, never }

    let seed: UInt64
    var roots: [(node: PolicyNode, start: Start)] = []
    var actions: [PolicyAction] = []
    var hasManualClock = false
    var isObserved = false
    var queueLimit = -1
}

/// Makes a program from a seed, and always the same one.
struct PolicyGenerator {
    private var random: SplitMix64
    private var lastID = 0
    /// The compounds that are there, and from which resource on those inside them may require one.
    private var compounds: [(id: Int, floor: Int)] = []
    /// How many resources there are that are held. Two rate limits come after them.
    static let heldCount = 6

    static func program(seed: UInt64) -> PolicyProgram {
        var generator = PolicyGenerator(random: SplitMix64(seed: seed))
        var program = PolicyProgram(seed: seed)
        let starts: [PolicyProgram.Start] = [.queue, .queue, .byHand, .byHand, .awaited, .awaited, .never]
        for _ in 0..<(1 + generator.pick(4)) {
            // Foundation does not take what has finished in its own `cancel()`.
            var root = generator.node(0, floor: 0, isStep: generator.chance(2))
            if root.kind == .foreign { root = generator.node(4, floor: 0, isStep: true) }
            program.roots.append((root, generator.element(of: starts)))
        }
        (program.hasManualClock, program.isObserved) = (generator.chance(2), generator.chance(2))
        program.queueLimit = generator.element(of: [-1, 1, 2, 4])
        for _ in 0..<generator.pick(10) { program.actions.append(generator.action(rootCount: program.roots.count)) }
        return program
    }

    private mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    /// Once in so many times.
    private mutating func chance(_ count: Int) -> Bool { pick(count) == 0 }
    private mutating func element<Element>(of elements: [Element]) -> Element { elements[pick(elements.count)] }

    /// Where composites hold resources, those inside them require only later ones, or else the same, which is refused. So
    /// they never wait for each other in a cycle. A step has an input and an output.
    private mutating func node(_ depth: Int, floor: Int, isStep: Bool) -> PolicyNode {
        lastID += 1
        let isLeaf = depth > 3 || pick(8) < 1 + 2 * depth
        let kinds = isLeaf ? PolicyNode.Kind.leaves : PolicyNode.Kind.composites
        var node = PolicyNode(
            id: lastID, kind: element(of: isStep ? Array(kinds.prefix(PolicyNode.Kind.stepCount)) : kinds))
        (node.limit, node.failure, node.delay) = (1 + pick(3), element(of: [0, 0, 1, 2]), 1 + pick(600))
        (node.cancelsRemaining, node.isCancelledBefore) = (chance(3), chance(20))
        (node.dependsOnSibling, node.requiresSuccess) = (chance(4), chance(2))
        if chance(3) { node.attemptTimeout = 100 + pick(2_000) }
        if chance(3) { node.priority = 1 - 2 * pick(2) }
        var held = floor
        for _ in 0..<element(of: node.kind == .foreign ? [0] : [0, 0, 1, 1, 2, 3]) {
            node.policies.append(policy(depth, floor: floor, &held))
        }
        if node.kind == .compound { compounds.append((node.id, held)) }
        let takesAll = node.kind == .compound || node.kind.makesAttempts
        for _ in 0..<(isLeaf ? 0 : node.kind.makesAttempts ? 1 : 1 + pick(4)) {
            var child = self.node(depth + 1, floor: held, isStep: !takesAll)
            if child.kind == .foreign, node.kind != .compound { child = self.node(4, floor: held, isStep: true) }
            node.children.append(child)
        }
        return node
    }

    private mutating func policy(_ depth: Int, floor: Int, _ held: inout Int) -> Policy {
        let time = pick(2_000)
        switch pick(10) {
        case 0, 1: return .timeout(chance(8) ? 0 : 50 + time)
        case 2: return .circuit
        case 3, 4:
            let needed = chance(4) && depth < 4 ? [node(5, floor: floor, isStep: true)] : []
            return .condition(chance(2) ? .satisfied : element(of: Policy.Verdict.allCases), prerequisite: needed)
        case 5: return .resource(Self.heldCount + pick(2), within: chance(4) ? time : nil)
        default:
            let index = floor + pick(Self.heldCount - floor)
            held = max(held, index)
            return .resource(index, within: chance(4) ? time : nil)
        }
    }

    private mutating func action(rootCount: Int) -> PolicyAction {
        var action = PolicyAction(
            thread: pick(3), spins: 1 + UInt64(pick(6_000)), target: chance(5) ? 0 : 1 + pick(lastID), effect: .describe
        )
        let compound = compounds.isEmpty ? nil : element(of: compounds)
        switch (pick(12), compound) {
        case (0, _): action.effect = .cancel
        case (1, _): action.effect = .cancelWithReason
        case (2, _): action.effect = chance(2) ? .finish : .fail
        case (3, _), (4, _): action.effect = .advance(pick(1_500))
        case (5, let (id, floor)?), (6, let (id, floor)?):
            (action.target, action.effect) = (id, .add(node(2, floor: floor, isStep: false), isStarted: chance(3)))
        case (7, _): action.effect = element(of: [.drop(pick(rootCount)), .cancelTask, .cancelQueue])
        case (8, let (id, _)?): (action.target, action.effect) = (chance(2) ? 0 : id, .limit(pick(4)))
        case (9, let (id, _)?): (action.target, action.effect) = (chance(2) ? 0 : id, .suspend(chance(2)))
        default: break
        }
        // What holds up others is over at a certain time.
        switch action.effect {
        case .limit, .suspend: break
        case .cancelQueue: action.inside = 1 + pick(lastID)
        default: action.inside = chance(3) ? 1 + pick(lastID) : nil
        }
        return action
    }
}
