import OperationKitTestSupport

// Actions.
extension ProgramRun {
    /// Does what is to be done when this leaf works.
    ///
    /// A leaf that is started by hand works while it is made, and its compound is not there: nothing is done.
    func actInside(_ node: StressNode) {
        for index in program.actions.indices where program.actions[index].trigger == .inside(node.id) {
            if node.entry.isStarted { log.add(.acted(index, isAccepted: false)) } else { act(index) }
        }
    }

    func act(_ index: Int) {
        let isInside = if case .inside = program.actions[index].trigger { true } else { false }
        log.add(.acted(index, isAccepted: perform(program.actions[index].effect, isInside: isInside, index)))
    }

    private func perform(_ effect: StressAction.Effect, isInside: Bool, _ index: Int) -> Bool {
        guard let operation = operation(effect.target) else { return false }
        switch effect {
        case .cancel:
            operation.cancel()
        case .cancelWithReason(let id):
            guard let operation = operation as? AsyncOperation else {
                operation.cancel()
                return true
            }
            operation.cancel(withError: StressError.reason(id))
        case .finish(let id, let fails):
            return (operation as? AsyncOperation)?.finish(withError: fails ? StressError.given(id) : nil) ?? false
        case .pause:
            setSuspended(operation, true)
            later(index) { [self] in setSuspended(operation, false) }
        case .squeeze(_, let limit):
            guard let compound = operation as? CompoundOperation else { return false }
            compound.maxConcurrentOperationCount = 0
            later(index) { if !compound.isFinished { compound.maxConcurrentOperationCount = limit } }
        case .cancelSuspended:
            setSuspended(operation, true)
            operation.cancel()
        case .add(let node, _):
            guard let compound = operation as? CompoundOperation, !notTaken.value.contains(effect.target) else {
                return false
            }
            return add(node, to: compound)
        case .cancelTask:
            return cancelTask()
        case .cancelQueue:
            guard isInside, let queue = OperationQueue.current, queue !== OperationQueue.main else { return false }
            queue.cancelAllOperations()
        case .useQueue:
            guard isInside, let queue = OperationQueue.current, queue !== OperationQueue.main else { return false }
            put(BlockOperation(), on: queue)
        case .depend(_, let source):
            return depend(operation, on: source)
        case .addAgain(let id):
            return addAgain(operation, id)
        case .addCycle(_, let isPair):
            guard let compound = operation as? CompoundOperation else { return false }
            return addCycle(to: compound, isPair: isPair)
        case .describe:
            return !operation.debugDescription.isEmpty
        }
        return true
    }

    /// Goes on on another thread, some time later.
    private func later(_ index: Int, _ body: @escaping @Sendable () -> Void) {
        hop { [seed = program.seed &+ UInt64(index)] in
            var random = SplitMix64(seed: seed)
            random.spinRandomly(upTo: 10_000)
            body()
        }
    }

    private func cancelTask() -> Bool {
        guard program.start.isAwaited else { return false }
        let task = waiting.change { waiting in
            waiting.isCancelled = true
            return waiting.task
        }
        task?.cancel()
        return true
    }

    /// Puts an operation on a queue that does not belong to it.
    private func put(_ operation: Operation, on queue: OperationQueue) {
        log.opened()
        tracker.track(operation, "an operation on another queue")
        operation.completionBlock = { [log] in log.closed() }
        queue.addOperation(operation)
    }

    private func depend(_ operation: Operation, on id: Int?) -> Bool {
        guard let source = id.map({ self.operation($0) }) ?? external.value else { return false }
        keep(operation)
        operation.addDependency(source)
        return true
    }

    private func addAgain(_ operation: Operation, _ id: Int) -> Bool {
        // Others cannot tell that they were children before.
        guard operation is AsyncOperation,
            let compound = parents[id].flatMap({ self.operation($0) }) as? CompoundOperation
        else { return false }
        do { try compound.addOperation(operation) } catch { return false }
        return true
    }

    private func addCycle(to compound: CompoundOperation, isPair: Bool) -> Bool {
        let first = tracker.track(AsyncOperation(), "first of a cycle")
        let second = isPair ? tracker.track(BlockOperation(), "second of a cycle") : compound
        first.addDependency(second)
        if isPair { second.addDependency(first) }
        defer {
            first.removeDependency(second)
            if isPair { second.removeDependency(first) }
        }
        do { try compound.addOperations(isPair ? [first, second] : [first]) } catch { return false }
        return true
    }

    private func addWhileCancelled(_ operation: Operation, _ id: Int, to compound: CompoundOperation) throws {
        let result = Shared(Result<Void, any Error>.success(()))
        DispatchQueue.concurrentPerform(iterations: 2) { iteration in
            if iteration == 0 {
                result.value = Result { try compound.addOperation(operation) }
            } else {
                spinRandomly(id, upTo: 300)
                operation.cancel()
            }
        }
        try result.value.get()
    }

    private func keep(_ operation: Operation) {
        kept.change { if !hasLetGo.value { $0.append(operation) } }
    }

    private func setSuspended(_ operation: Operation, _ isSuspended: Bool) {
        // One that ended while it was suspended is left so.
        if !isSuspended, operation.isFinished { return }
        (operation as? CompoundOperation)?.isSuspended = isSuspended
        (operation as? Waterfall<Int, Int>)?.isSuspended = isSuspended
    }

    private func add(_ node: StressNode, to compound: CompoundOperation) -> Bool {
        notTaken.change { $0.formUnion(node.subtree.map(\.id)) }
        let operation = make(node)
        do {
            if node.entry == .cancelledMeanwhile {
                try addWhileCancelled(operation, node.id, to: compound)
            } else {
                try compound.addOperation(operation)
            }
            notTaken.change { $0.subtract(node.subtree.map(\.id)) }
            return true
        } catch {
            keep(operation)
            // It was opened when it was made, with all that is inside, and will not finish unless it was started by
            // hand. What finishes in its own `cancel()` may be cancelled at any moment, so it is, and closed by its end.
            for node in node.subtree where !node.entry.isStarted && references.change({ $0[node.id] != nil }) {
                if facts.endsInCancel(node) { self.operation(node.id)?.cancel() } else { log.closed() }
            }
            return false
        }
    }
}
