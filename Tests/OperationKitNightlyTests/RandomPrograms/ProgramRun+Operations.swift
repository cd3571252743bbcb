import OperationKitTestSupport

/// A compound that tells when it begins.
private final class PreparingCompound: CompoundOperation, @unchecked Sendable {
    var onPrepare: (@Sendable (CompoundOperation) throws -> Void)?

    override func prepare() throws {
        let body = onPrepare
        onPrepare = nil
        try body?(self)
    }
}

/// An operation that takes its time to say what it depends on, and whether it is cancelled, so that this changes
/// meanwhile.
private final class SlowlyReadOperation: ScriptedOperation, @unchecked Sendable {
    var seed: UInt64 = 0

    override var dependencies: [Operation] { late(super.dependencies) }

    override var isCancelled: Bool { late(super.isCancelled) }

    func late<Value>(_ value: Value) -> Value {
        var random = SplitMix64(seed: seed)
        random.spinRandomly(upTo: 500)
        return value
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
        case .recovery(let source, let made): operation = recovery(source, made)
        case .gathering(let compound): operation = gathering(compound)
        }
        operation.queuePriority = node.priority
        return enroll(operation, node)
    }

    /// Writes down the end of an operation.
    func observe(_ operation: Operation, _ id: Int) {
        operation.completionBlock = { [self] in
            log.add(.finished(id))
            log.closed()
        }
        guard let operation = operation as? AsyncOperation else { return }
        operation.asyncCompletionBlock = { [self, weak operation] error in
            let isCancelled = operation?.isCancelled ?? false
            log.add(.completed(id, StressOutcome(error), isCancelled: isCancelled))
        }
    }

    /// Gives an operation its dependencies and its state.
    func arrange(_ operation: Operation, _ node: StressNode) {
        if node.waitsForExternal, let external = external.value { operation.addDependency(external) }
        // A sibling that is gone has ended.
        for id in node.after { if let sibling = self.operation(id) { operation.addDependency(sibling) } }
        if !requiresLate(node) { requireSuccess(operation, node) }
        if let never = never.value {
            if node.waitsForever { operation.addDependency(never) }
            // Foundation does not begin others then.
            if node.dropsDependency, !node.waitsForever, operation is AsyncOperation {
                operation.addDependency(never)
                operation.removeDependency(never)
            }
        }
        switch node.entry {
        case .fresh: break
        case .cancelled: operation.cancel()
        case .cancelledMeanwhile:
            if additions.contains(node.id) { return }
            onThreadOfItsOwn { [seed = program.seed &+ UInt64(node.id)] in
                var random = SplitMix64(seed: seed)
                random.spinRandomly(upTo: 3_000)
                operation.cancel()
            }
        case .running, .finished: operation.start()
        }
    }

    /// Watches an operation from now on, and expects it to finish.
    func enroll<Made: Operation>(_ operation: Made, _ node: StressNode) -> Made {
        operation.name = node.name
        tracker.track(operation, node.name)
        log.opened()
        log.add(.built(node.id))
        observe(operation, node.id)
        references.change {
            let isHeld = program.keepsReferences && !hasLetGo.value
            $0[node.id] = Reference(held: isHeld ? operation : nil, known: operation)
        }
        if program.observation == .each { observeEvents(of: operation) }
        arrange(operation, node)
        return operation
    }

    /// Whether a step of a macro requires the success of others only once the macro has been made.
    func requiresLate(_ node: StressNode) -> Bool {
        node.id % 2 == 0 && macroSteps.contains(node.id)
    }

    func requireSuccess(_ operation: Operation, _ node: StressNode) {
        for id in node.requires {
            guard let sibling = self.operation(id) else { continue }
            if let operation = operation as? AsyncOperation {
                operation.requireSuccess(of: sibling)
            } else {
                operation.addDependency(sibling)
            }
        }
    }

    /// The nodes that depend on others come after them, because dependencies are operations that have been made.
    func makeAll(_ nodes: [StressNode]) -> [Operation] {
        var made: [Int: Operation] = [:]
        var open = nodes
        while !open.isEmpty {
            let ids = Set(open.map(\.id))
            for node in open where ids.isDisjoint(with: node.subtree.flatMap(\.awaited)) { made[node.id] = make(node) }
            open.removeAll { made[$0.id] != nil }
        }
        return nodes.compactMap { made[$0.id] }
    }

    func make(_ compound: StressCompound, _ node: StressNode) -> Operation {
        let operation = PreparingCompound(
            operations: compound.prepares ? [] : makeAll(compound.children),
            maxConcurrentOperationCount: compound.limit, failurePolicy: compound.policy)
        operation.onPrepare = { [self] operation in
            log.add(.began(node.id))
            if compound.prepares { try operation.addOperations(makeAll(compound.children)) }
        }
        return operation
    }
}

// Leaves.
extension ProgramRun {
    func begin(_ node: StressNode) {
        log.add(.began(node.id))
        actInside(node)
    }

    func end(_ node: StressNode) throws {
        log.add(.ended(node.id))
        if node.leaf?.fails == true { throw StressError.failed(node.id) }
    }

    /// Ends the work, and reports how, once or twice.
    func end(_ node: StressNode, _ finish: ((any Error)?) -> Void) {
        do {
            try end(node)
            finish(nil)
        } catch {
            finish(error)
        }
        if node.leaf?.finishesTwice == true { finish(StressError.given(-1)) }
    }

    func make(_ leaf: StressLeaf, _ node: StressNode) -> Operation {
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
                end(node, finish.callAsFunction)
            }
        case .hopping:
            return AsyncBlockOperation { [self] finish in
                begin(node)
                hop { self.end(node, finish.callAsFunction) }
            }
        case .later:
            return AsyncBlockOperation { [self] finish in
                begin(node)
                later { self.end(node, finish.callAsFunction) }
            }
        case .losing:
            return AsyncBlockOperation { [self] finish in lose(finish, node) }
        case .foreign where facts.endsInCancel(node):
            return foreignThatEndsInCancel(node)
        case .foreign:
            let isReady = !facts.isReadyLate(node)
            let operation = ForeignOperation(isReady: isReady) { [self] operation in
                begin(node)
                hop {
                    self.log.add(.ended(node.id))
                    operation.finish()
                }
            }
            if !isReady { hop { operation.becomeReady(announces: node.id.isMultiple(of: 2)) } }
            return operation
        case .task:
            return TaskOperation<Void> { [self] in
                begin(node)
                await Task.yield()
                try end(node)
            }
        case .stoppable where node.id.isMultiple(of: 2):
            return AsyncBlockOperation { [self] finish in
                begin(node)
                finish.onCancel { finish(CancellationError()) }
                hop { self.end(node, finish.callAsFunction) }
            }
        case .stoppable:
            let operation = SlowlyReadOperation(
                main: { [self] operation in
                    begin(node)
                    hop { self.end(node) { operation.finish(withError: $0) } }
                }, didCancel: { $0.finish(withError: CancellationError()) })
            operation.seed = program.seed &+ UInt64(node.id)
            return operation
        case .guarded:
            return guarded { [self] locked in
                begin(node)
                hop { locked { self.end(node, $0) } }
            }
        case .awaiting:
            return TaskOperation<Void> { [self] in
                begin(node)
                await awaitSomething(for: node)
                try end(node)
            }
        }
    }
}

extension StressNode {
    /// As a job of a waterfall: whether it is no operation.
    var isClosure: Bool { leaf?.kind == .block || leaf?.kind == .throwing }
}
