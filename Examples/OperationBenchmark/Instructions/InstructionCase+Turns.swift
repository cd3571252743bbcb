import Foundation
import OperationKit

// Operations that take turns, on a queue or in one long composite.
extension InstructionCase {
    static let queueBlock = InstructionCase(
        id: "queue-block", summary: "a BlockOperation with an empty block, on a stock queue of width 1",
        isRepeated: true
    ) { count in
        runOnQueue((0..<count).map { _ in BlockOperation {} })
    }

    static let queue = InstructionCase(
        id: "queue", summary: "an AsyncOperation that finishes in main(), on a stock queue of width 1",
        baseline: "queue-block", isRepeated: true
    ) { count in
        runOnQueue(Leaf.make(count))
    }

    static let compound = InstructionCase(
        id: "compound", summary: "an AsyncOperation that finishes in main(), in a compound of width 1",
        baseline: "queue"
    ) { count in
        runInCompound(Leaf.make(count))
    }

    static let chain = InstructionCase(
        id: "chain", summary: "compound, each child dependent on the one before", baseline: "dependencies"
    ) { count in
        runInCompound(Leaf.chain(count))
    }

    static let blocks = InstructionCase(
        id: "blocks", summary: "a BlockOperation with an empty block, in a compound of width 2",
        baseline: "queue-block", isRepeated: true
    ) { count in
        runInCompound((0..<count).map { _ in BlockOperation {} }, width: 2)
    }

    static let blockChain = InstructionCase(
        id: "block-chain", summary: "blocks, each dependent on the one before", baseline: "chain", isRepeated: true
    ) { count in
        runInCompound((0..<count).map { _ in BlockOperation {} }.chained())
    }

    static let queueOtherThread = InstructionCase(
        id: "queue-other-thread", summary: "queue, of operations that finish on DispatchQueue.global()",
        baseline: "queue", isRepeated: true
    ) { count in
        runOnQueue(RemoteLeaf.make(count))
    }

    static let otherThread = InstructionCase(
        id: "other-thread", summary: "compound, of children that finish on DispatchQueue.global()",
        baseline: "queue-other-thread", isRepeated: true
    ) { count in
        runInCompound(RemoteLeaf.make(count))
    }

    static let macro = InstructionCase(
        id: "macro", summary: "a step of one long macro", baseline: "chain", counts: .composites
    ) { count in
        let (macro, steps) = makeMacro(ofSteps: count)
        run(macro)
        withExtendedLifetime(steps) {}
    }
}

// Composites, one for each unit.
extension InstructionCase {
    static let smallCompound = InstructionCase(
        id: "small-compound", summary: "a compound of four that finish in main(), on a stock queue of width 1",
        counts: .composites, isRepeated: true
    ) { count in
        runOnQueue((0..<count).map { _ in CompoundOperation(operations: Leaf.make(4)) })
    }

    static let inTurn = InstructionCase(
        id: "in-turn", summary: "an AsyncOperation that finishes in main(), on a stock queue, one after the other",
        counts: .composites, isRepeated: true
    ) { count in
        let queue = OperationQueue()
        for _ in 0..<count {
            let leaf = Leaf()
            queue.addOperation(leaf)
            leaf.waitUntilFinished()
        }
    }

    static let singleChild = InstructionCase(
        id: "single-child", summary: "a compound of one that finishes in main(), started by hand, one after the other",
        baseline: "in-turn", counts: .composites, isRepeated: true
    ) { count in
        for _ in 0..<count {
            run(CompoundOperation(operations: Leaf.make(1)))
        }
    }

    static let singleBlock = InstructionCase(
        id: "single-block", summary: "single-child, of a BlockOperation", baseline: "in-turn", counts: .composites,
        isRepeated: true
    ) { count in
        for _ in 0..<count {
            run(CompoundOperation(operations: [BlockOperation {}]))
        }
    }

    static let smallMacro = InstructionCase(
        id: "small-macro", summary: "a macro of four steps, on a stock queue of width 1", counts: .composites,
        isRepeated: true
    ) { count in
        runOnQueue((0..<count).map { _ in makeMacro(ofSteps: 4).macro })
    }
}

private func runOnQueue(_ operations: [Operation]) {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    queue.addOperations(operations, waitUntilFinished: false)
    queue.waitForAll()
}

private func runInCompound(_ children: [Operation], width: Int = 1) {
    run(CompoundOperation(operations: children, maxConcurrentOperationCount: width))
}

/// Starts a composite by hand.
private func run(_ composite: AsyncOperation) {
    composite.start()
    composite.waitUntilFinished()
}
