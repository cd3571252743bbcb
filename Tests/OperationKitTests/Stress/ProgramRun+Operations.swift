import Foundation
import OperationKit

/// A compound that tells when it begins.
private final class PreparingCompound: CompoundOperation, @unchecked Sendable {
    var onPrepare: (@Sendable (CompoundOperation) throws -> Void)?

    override func prepare() throws {
        let body = onPrepare
        onPrepare = nil
        try body?(self)
    }
}

// Making the operations of a program.
extension ProgramRun {
    func make(_ node: StressNode) -> Operation {
        let operation: Operation
        switch node.work {
        case .leaf(let leaf): operation = make(leaf, node)
        case .compound(let compound): operation = make(compound, node)
        case .macro(let steps): operation = macro(steps)
        case .waterfall(let jobs): operation = waterfall(jobs)
        case .collection(let collection): operation = make(collection, node)
        }
        operation.queuePriority = node.priority
        if node.waitsForOutside, let outside = outside.value { operation.addDependency(outside) }
        // A sibling that is gone has ended.
        for id in node.after { if let sibling = self.operation(id) { operation.addDependency(sibling) } }
        return enroll(operation, node)
    }

    /// Watches an operation from now on, and expects it to finish.
    private func enroll<Made: Operation>(_ operation: Made, _ node: StressNode) -> Made {
        operation.name = node.name
        tracker.track(operation, node.name)
        log.opened()
        log.add(.built(node.id))
        operation.completionBlock = { [log, id = node.id] in
            log.add(.finished(id))
            log.closed()
        }
        if let operation = operation as? AsyncOperation {
            operation.asyncCompletionBlock = { [log, weak operation, id = node.id] error in
                let isCancelled = operation?.isCancelled ?? false
                log.add(.completed(id, StressOutcome(error), isCancelled: isCancelled))
            }
        }
        references.change {
            let isHeld = program.keepsReferences && !hasLetGo.value
            $0[node.id] = Reference(held: isHeld ? operation : nil, known: operation)
        }
        return operation
    }

    /// The nodes that depend on others come after them, because dependencies are operations that have been made.
    private func makeAll(_ nodes: [StressNode]) -> [Operation] {
        var made: [Int: Operation] = [:]
        var open = nodes
        while !open.isEmpty {
            let ids = Set(open.map(\.id))
            for node in open where ids.isDisjoint(with: node.after) { made[node.id] = make(node) }
            open.removeAll { made[$0.id] != nil }
        }
        return nodes.compactMap { made[$0.id] }
    }

    private func make(_ compound: StressCompound, _ node: StressNode) -> Operation {
        let operation = PreparingCompound(
            operations: compound.prepares ? [] : makeAll(compound.children),
            maxConcurrentOperationCount: compound.limit, failurePolicy: compound.policy)
        operation.onPrepare = { [self] operation in
            log.add(.began(node.id))
            if compound.prepares { try operation.addOperations(makeAll(compound.children)) }
        }
        return operation
    }

    private func make(_ collection: StressCollection, _ node: StressNode) -> Operation {
        let size = collection.strategy.isBatch ? 2 : 1
        let numbers = collection.strategy.make(
            limit: collection.limit, batchSize: size, policy: collection.policy
        ) { [self] items, completion in
            let unit = items[0] / size
            let end: @Sendable () -> Void = { [self] in
                log.add(.unitEnded(node.id, unit: unit))
                completion(collection.units[unit] ? StressError.unit(unit) : nil)
                if collection.completesTwice { completion(StressError.unit(-1)) }
            }
            log.add(.unitBegan(node.id, unit: unit))
            if collection.hops { hop(end) } else { end() }
        }
        return numbers.operation(on: Array(0..<collection.units.count * size))
    }
}

// Leaves.
extension ProgramRun {
    private func begin(_ node: StressNode) {
        log.add(.began(node.id))
        actInside(node.id)
    }

    private func end(_ node: StressNode) throws {
        log.add(.ended(node.id))
        if node.leaf?.fails == true { throw StressError.failed(node.id) }
    }

    /// Ends the work, and reports how, once or twice.
    private func end(_ node: StressNode, _ finish: ((any Error)?) -> Void) {
        do {
            try end(node)
            finish(nil)
        } catch {
            finish(error)
        }
        if node.leaf?.finishesTwice == true { finish(StressError.given(-1)) }
    }

    private func make(_ leaf: StressLeaf, _ node: StressNode) -> Operation {
        switch leaf.kind {
        case .block:
            return BlockOperation { [self] in
                begin(node)
                log.add(.ended(node.id))
            }
        case .throwing:
            return ThrowingBlockOperation { [self] in
                begin(node)
                try end(node)
            }
        case .inline:
            return AsyncBlockOperation { [self] finish in
                begin(node)
                end(node, finish)
            }
        case .hopping:
            return AsyncBlockOperation { [self] finish in
                begin(node)
                hop { self.end(node, finish) }
            }
        case .later:
            return AsyncBlockOperation { [self] finish in
                begin(node)
                later { self.end(node, finish) }
            }
        case .foreign:
            return ForeignOperation { [self] operation in
                begin(node)
                hop {
                    self.log.add(.ended(node.id))
                    operation.finish()
                }
            }
        case .task:
            return TaskOperation<Void> { [self] in
                begin(node)
                await Task.yield()
                try end(node)
            }
        case .stoppable:
            return ScriptedOperation(
                main: { [self] operation in
                    begin(node)
                    hop { self.end(node) { operation.finish(withError: $0) } }
                }, didCancel: { $0.finish(withError: CancellationError()) })
        }
    }
}

// Steps of macros and waterfalls.
extension ProgramRun {
    private func step(_ node: StressNode) -> IOOperation<Int, Int> {
        let operation: IOOperation<Int, Int>
        switch node.leaf?.kind {
        case .hopping, .stoppable:
            operation = Step { [self] step, input in
                begin(node)
                hop { self.end(step, node, input) }
            }
        case .later:
            operation = Step { [self] step, input in
                begin(node)
                later { self.end(step, node, input) }
            }
        case .task:
            operation = IOBlockOperation { [self] (input: Int) async throws -> Int in
                begin(node)
                await Task.yield()
                try end(node)
                return input + 1
            }
        case .block, .throwing:
            operation = IOBlockOperation { [self] (input: Int) throws -> Int in
                begin(node)
                try end(node)
                return input + 1
            }
        case .inline, .foreign, nil:
            operation = Step { [self] step, input in
                begin(node)
                end(step, node, input)
            }
        }
        return enroll(operation, node)
    }

    private func end(_ step: Step<Int, Int>, _ node: StressNode, _ input: Int) {
        end(node) { error in
            if let error { step.finish(withError: error) } else { step.finish(with: input + 1) }
        }
    }

    private func macro(_ steps: [StressNode]) -> Operation {
        let macro = chain(of: steps.map { step($0) })
        macro.input = 0
        return macro
    }

    private func waterfall(_ jobs: [StressNode]) -> Operation {
        let waterfall = Waterfall<Int, Int>().then(
            jobs.map { node -> @Sendable (Int) throws -> WaterfallStep<Int> in
                { [self] value in
                    guard node.isClosure else {
                        let operation = step(node)
                        operation.input = value
                        return .operation(operation)
                    }
                    begin(node)
                    try end(node)
                    return .value(value + 1)
                }
            })
        waterfall.input = 0
        return waterfall
    }
}

extension StressNode {
    /// As a job of a waterfall: whether it is no operation.
    var isClosure: Bool { leaf?.kind == .block || leaf?.kind == .throwing }
}
