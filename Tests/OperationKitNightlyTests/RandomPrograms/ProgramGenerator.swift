import OperationKitTestSupport

/// Makes a program from a seed, and always the same one.
struct ProgramGenerator {
    private var random: SplitMix64
    private var lastID = 0
    private var budget: Int
    /// Where nothing is cancelled, the oracle knows the outcome exactly.
    let isCalm: Bool

    private init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        budget = 4 + Int(random.next() % 28)
        isCalm = random.next() % 3 == 0
    }

    static func program(seed: UInt64) -> StressProgram {
        var generator = ProgramGenerator(seed: seed)
        return generator.program(seed: seed)
    }

    private mutating func program(seed: UInt64) -> StressProgram {
        let root = compound(id: 0, depth: 0, around: [])
        let start = element(
            of: [.queue, .queue, .byHand, .byHand, .task, .task, .task, .coordinator] as [StressStart])
        var program = StressProgram(seed: seed, root: root, start: start, keepsReferences: !chance(3))
        program.isExternalStock = chance(3)
        for _ in 0..<pick(8) { program.actions.append(action(in: program)) }
        program.observation = element(of: StressObservation.allCases)
        return program
    }

    mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    /// Once in so many times.
    mutating func chance(_ count: Int) -> Bool { pick(count) == 0 }

    mutating func element<Element>(of elements: [Element]) -> Element { elements[pick(elements.count)] }

    private mutating func newID() -> Int {
        lastID += 1
        budget -= 1
        return lastID
    }
}

// Nodes.
extension ProgramGenerator {
    /// What is inside may require the success of those around: beside it, and beside those that it is inside of.
    private mutating func compound(id: Int, depth: Int, around: [StressNode]) -> StressNode {
        var children: [StressNode] = []
        // They may be gone when `prepare()` makes the children.
        let prepares = chance(4)
        for _ in 0..<pick(depth == 0 ? 9 : 6) where budget > 0 {
            children.append(child(depth: depth + 1, siblings: children, around: prepares ? [] : around))
        }
        // So that children also depend on later ones.
        if chance(2) { children.shuffle(using: &random) }
        let compound = StressCompound(
            limit: element(of: [-1, -1, 1, 1, 2, 3]), policy: chance(3) ? .cancelRemaining : .continueAll,
            prepares: prepares, children: children)
        return StressNode(id: id, work: .compound(compound))
    }

    private mutating func child(depth: Int, siblings: [StressNode], around: [StressNode]) -> StressNode {
        let id = newID()
        var node: StressNode
        switch depth < 4 ? pick(13) : 2 + pick(11) {
        case 0, 1: node = compound(id: id, depth: depth, around: around + siblings)
        case 2: node = StressNode(id: id, work: .macro(steps(1 + pick(4))))
        case 3: node = StressNode(id: id, work: .waterfall(steps(pick(5), areJobs: true)))
        case 4: node = StressNode(id: id, work: recovery())
        case 5:
            var gathered = StressCompound(
                limit: element(of: [-1, -1, 1, 2]), policy: chance(3) ? .cancelRemaining : .continueAll,
                children: steps(pick(5)))
            for index in gathered.children.indices { require(in: around + siblings, &gathered.children[index]) }
            node = StressNode(id: id, work: .gathering(gathered))
        default: node = StressNode(id: id, work: .leaf(leaf(of: StressLeaf.Kind.allCases)))
        }
        // Its place must not be taken from those that it waits for.
        let inside = Set(node.subtree.flatMap(\.requires))
        node.after = siblings.map(\.id).filter { inside.contains($0) }
        for sibling in siblings where chance(4) && !node.after.contains(sibling.id) {
            if node.isAsynchronous, sibling.isAsynchronous, chance(3) {
                node.requires.append(sibling.id)
            } else {
                node.after.append(sibling.id)
            }
        }
        if node.isAsynchronous { require(in: around, &node) }
        node.waitsForExternal = chance(12)
        arrive(&node)
        if chance(3) { node.priority = element(of: [.veryLow, .low, .high, .veryHigh]) }
        return node
    }

    /// Has it require the success of one of others, once in so many times.
    private mutating func require(in others: [StressNode], _ node: inout StressNode) {
        let sources = others.filter(\.isAsynchronous)
        if !sources.isEmpty, chance(5) { node.requires.append(element(of: sources).id) }
    }

    private mutating func leaf(of kinds: [StressLeaf.Kind]) -> StressLeaf {
        var leaf = StressLeaf(kind: element(of: kinds), fails: chance(6), finishesTwice: chance(6))
        if leaf.kind == .guarded { leaf.fails = false }
        if leaf.kind == .losing {
            (leaf.fails, leaf.finishesTwice) = (false, false)
            if chance(2) { leaf.kind = .hopping }
        }
        return leaf
    }

    /// Gives a child a state of its own, in one of eight.
    private mutating func arrive(_ node: inout StressNode) {
        switch pick(isCalm ? 24 : 16) {
        case 0 where !isCalm:
            node.entry = .cancelled
        case 1 where !isCalm:
            node.entry = .cancelledMeanwhile
        case 2:
            guard node.awaited.isEmpty, !node.waitsForExternal, let kind = node.leaf?.kind else { return }
            // A block has ended when `start()` returns.
            node.entry = [.block, .throwing, .inline].contains(kind) ? .finished : .running
        case 3:
            node.dropsDependency = node.isAsynchronous
        default:
            return
        }
        // A compound is not told when another operation is cancelled.
        let isTold = node.isAsynchronous
        node.waitsForever = (node.entry == .cancelled || node.entry == .cancelledMeanwhile && isTold) && chance(2)
    }

    private mutating func steps(_ count: Int, areJobs: Bool = false) -> [StressNode] {
        var steps: [StressNode] = []
        for _ in 0..<count {
            let kinds: [StressLeaf.Kind] = [.block, .throwing, .inline, .hopping, .later, .losing, .task]
            var step = StressNode(id: newID(), work: .leaf(leaf(of: kinds)))
            if !isCalm, chance(16) {
                step.entry = chance(3) ? .cancelled : .cancelledMeanwhile
                step.waitsForever = chance(2)
            }
            step.waitsForExternal = chance(16)
            for earlier in steps where chance(8) && !(areJobs && earlier.isClosure) {
                step.requires.append(earlier.id)
            }
            // A closure has no state of its own.
            steps.append(areJobs && step.isClosure ? StressNode(id: step.id, work: step.work) : step)
        }
        return steps
    }

    private mutating func recovery() -> StressWork {
        var pair = steps(2)
        // The second one does not exist while the first one does.
        pair[1].requires = []
        // Otherwise it would never run.
        if case .leaf(var leaf) = pair[0].work, !chance(3) {
            leaf.fails = true
            pair[0].work = .leaf(leaf)
        }
        return .recovery(pair[0], pair[1])
    }
}

// Actions.
extension ProgramGenerator {
    private mutating func action(in program: StressProgram) -> StressAction {
        let nodes = program.nodes
        let leaves = nodes.filter { $0.leaf != nil }.map(\.id)
        if !leaves.isEmpty, chance(8) {
            let leaf = element(of: leaves)
            let effect = isCalm || chance(2) ? StressAction.Effect.useQueue(leaf) : .cancelQueue(leaf)
            return StressAction(trigger: .inside(leaf), effect: effect)
        }
        let trigger: StressAction.Trigger
        switch leaves.isEmpty ? pick(3) : pick(5) {
        case 0: trigger = .beforeStart
        case 3, 4: trigger = .inside(element(of: leaves))
        default: trigger = .outside(thread: pick(2), delay: element(of: [1, 300, 3_000, 30_000]))
        }
        return StressAction(trigger: trigger, effect: effect(in: program))
    }

    private mutating func effect(in program: StressProgram) -> StressAction.Effect {
        let nodes = program.nodes
        let compounds = nodes.filter { $0.compound != nil }
        // The root is what people cancel most.
        let any = chance(4) ? 0 : element(of: nodes).id
        let compound = element(of: compounds)
        switch isCalm ? 7 + pick(8) : pick(15) {
        case 0: return .cancel(any)
        case 1: return program.start.isAwaited ? .cancelTask : .cancel(any)
        case 2, 3: return .cancelWithReason(any)
        case 4: return .finish(any, fails: chance(2))
        case 5: return .cancelSuspended(compound.id)
        case 6: return program.start.isAwaited ? .cancelTask : .finish(any, fails: chance(2))
        case 7: return .pause(element(of: nodes.filter { $0.compound != nil || $0.isWaterfall }).id)
        case 8: return .squeeze(compound.id, limit: element(of: [-1, 1, 2, 5]))
        case 9: return dependency(in: compound)
        case 10: return refusal(in: compound)
        case 11: return chance(4) ? .describe(any) : .addCycle(to: compound.id, isPair: chance(2))
        default:
            budget = max(budget, 4)
            // Those that `prepare()` adds may not be there yet.
            let siblings = compound.compound?.prepares == true ? [] : compound.children
            var child = child(depth: 3, siblings: siblings, around: [])
            if !isCalm, chance(6), child.isAsynchronous {
                (child.entry, child.waitsForever) = (.cancelledMeanwhile, true)
                child.dropsDependency = false
            }
            return .add(child, to: compound.id)
        }
    }

    /// A dependency that comes late: of a child on one that was made earlier, so that no cycle is closed.
    private mutating func dependency(in node: StressNode) -> StressAction.Effect {
        // A queue never begins an operation that depends on another one again after it has let go of one on Linux.
        let children = node.children.filter { !$0.dropsDependency }
        guard !children.isEmpty else { return .describe(node.id) }
        let child = element(of: children)
        let earlier = node.children.filter { $0.id < child.id }
        if node.compound?.prepares == true || earlier.isEmpty || chance(2) { return .depend(child.id, on: nil) }
        return .depend(child.id, on: element(of: earlier).id)
    }

    /// The addition of a child that is there already. Operations of other libraries cannot tell that they were.
    private mutating func refusal(in node: StressNode) -> StressAction.Effect {
        let children = node.children.filter(\.isAsynchronous)
        if node.compound?.prepares == true || children.isEmpty { return .addCycle(to: node.id, isPair: chance(2)) }
        return .addAgain(element(of: children).id)
    }
}

extension StressNode {
    var isWaterfall: Bool { if case .waterfall = work { true } else { false } }

    /// As a child of a compound: whether it is an `AsyncOperation`.
    var isAsynchronous: Bool { leaf?.isStock != true }
}
