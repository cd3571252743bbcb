import Foundation
import OperationKit

/// Makes a program from a seed, and always the same one.
struct ProgramGenerator {
    private var random: SplitMix64
    private var lastID = 0
    private var budget: Int

    private init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        budget = 4 + Int(random.next() % 28)
    }

    static func program(seed: UInt64) -> StressProgram {
        var generator = ProgramGenerator(seed: seed)
        return generator.program(seed: seed)
    }

    private mutating func program(seed: UInt64) -> StressProgram {
        let root = compound(id: 0, depth: 0)
        var program = StressProgram(
            seed: seed, root: root, startsByHand: chance(4), keepsReferences: !chance(3))
        // Where nothing is cancelled, the oracle knows the outcome exactly.
        let isCalm = chance(3)
        for _ in 0..<pick(7) { program.actions.append(action(in: program, isCalm: isCalm)) }
        return program
    }

    private mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    /// Once in so many times.
    private mutating func chance(_ count: Int) -> Bool { pick(count) == 0 }

    private mutating func element<Element>(of elements: [Element]) -> Element { elements[pick(elements.count)] }

    private mutating func newID() -> Int {
        lastID += 1
        budget -= 1
        return lastID
    }
}

// Nodes.
extension ProgramGenerator {
    private mutating func compound(id: Int, depth: Int) -> StressNode {
        var children: [StressNode] = []
        for _ in 0..<pick(depth == 0 ? 9 : 6) where budget > 0 {
            children.append(child(depth: depth + 1, siblings: children.map(\.id)))
        }
        // So that children also depend on later ones.
        if chance(2) { children.shuffle(using: &random) }
        let compound = StressCompound(
            limit: element(of: [-1, -1, 1, 1, 2, 3]), policy: chance(3) ? .cancelRemaining : .continueAll,
            prepares: chance(4), children: children)
        return StressNode(id: id, work: .compound(compound))
    }

    private mutating func child(depth: Int, siblings: [Int]) -> StressNode {
        let id = newID()
        var node: StressNode
        switch depth < 4 ? pick(12) : 2 + pick(10) {
        case 0, 1: node = compound(id: id, depth: depth)
        case 2: node = StressNode(id: id, work: .macro(steps(1 + pick(4))))
        case 3: node = StressNode(id: id, work: .waterfall(steps(pick(5))))
        case 4: node = StressNode(id: id, work: .collection(collection()))
        default: node = StressNode(id: id, work: .leaf(leaf(of: StressLeaf.Kind.allCases)))
        }
        for sibling in siblings where chance(4) { node.after.append(sibling) }
        node.waitsForOutside = chance(12)
        if chance(3) { node.priority = element(of: [.veryLow, .low, .high, .veryHigh]) }
        return node
    }

    private mutating func leaf(of kinds: [StressLeaf.Kind]) -> StressLeaf {
        StressLeaf(kind: element(of: kinds), fails: chance(6), finishesTwice: chance(6))
    }

    private mutating func steps(_ count: Int) -> [StressNode] {
        (0..<count).map { _ in
            let kinds: [StressLeaf.Kind] = [.block, .throwing, .inline, .hopping, .later, .task]
            return StressNode(id: newID(), work: .leaf(leaf(of: kinds)))
        }
    }

    private mutating func collection() -> StressCollection {
        let units = (0..<pick(7)).map { _ in chance(6) }
        return StressCollection(
            strategy: element(of: Strategy.allCases), limit: 1 + pick(3),
            policy: chance(3) ? .cancelRemaining : .continueAll, units: units, hops: chance(2),
            completesTwice: chance(4))
    }
}

// Actions.
extension ProgramGenerator {
    private mutating func action(in program: StressProgram, isCalm: Bool) -> StressAction {
        let nodes = program.nodes
        let leaves = nodes.filter { $0.leaf != nil }.map(\.id)
        let trigger: StressAction.Trigger
        switch leaves.isEmpty ? pick(3) : pick(5) {
        case 0: trigger = .beforeStart
        case 3, 4: trigger = .inside(element(of: leaves))
        default: trigger = .outside(thread: pick(2), delay: element(of: [1, 300, 3_000, 30_000]))
        }
        return StressAction(trigger: trigger, effect: effect(on: nodes, isCalm: isCalm))
    }

    private mutating func effect(on nodes: [StressNode], isCalm: Bool) -> StressAction.Effect {
        let compounds = nodes.filter { $0.compound != nil }
        // The root is what people cancel most.
        let any = chance(4) ? 0 : element(of: nodes).id
        let compound = element(of: compounds)
        switch isCalm ? 6 + pick(5) : pick(11) {
        case 0, 1: return .cancel(any)
        case 2, 3: return .cancelWithReason(any)
        case 4: return .finish(any, fails: chance(2))
        case 5: return .cancelSuspended(compound.id)
        case 6: return .pause(element(of: nodes.filter { $0.compound != nil || $0.isWaterfall }).id)
        case 7: return .squeeze(compound.id, limit: element(of: [-1, 1, 2, 5]))
        default:
            budget = max(budget, 4)
            // Those that `prepare()` adds may not be there yet.
            let siblings = compound.compound?.prepares == true ? [] : compound.children.map(\.id)
            return .add(child(depth: 3, siblings: siblings), to: compound.id)
        }
    }
}

extension StressNode {
    var isWaterfall: Bool { if case .waterfall = work { true } else { false } }
}
