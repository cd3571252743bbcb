import OperationKitTestSupport

// Work with a lock of its own, work that awaits other work, and work that loses what ends it.
extension ProgramRun {
    /// Takes the lock of an operation, and calls a body that can end the operation.
    typealias Locked = @Sendable (_ body: (_ finish: ((any Error)?) -> Void) -> Void) -> Void

    /// Spends a random short time, another one for each node.
    func spinRandomly(_ id: Int, upTo turns: UInt64 = 3_000) {
        var random = SplitMix64(seed: program.seed &+ UInt64(id))
        random.spinRandomly(upTo: turns)
    }

    /// An operation that ends with a lock held that its `didCancel()` takes, too.
    func guarded(_ work: @escaping @Sendable (_ locked: @escaping Locked) -> Void) -> ScriptedOperation {
        let lock = NSLock()
        return ScriptedOperation(
            main: { operation in
                work { body in lock.withLock { body { operation.finish(withError: $0) } } }
            }, didCancel: { operation in lock.withLock { _ = operation.finish(withError: CancellationError()) } })
    }

    /// Suspends until something has ended that is cancelled with the task that awaits it, often at the moment of its
    /// end.
    func awaitSomething(for node: StressNode) async {
        let task = Task { await end(ofSomethingFor: node) }
        if node.id % 4 > 0 {
            hop { [self] in
                spinRandomly(node.id)
                task.cancel()
            }
        }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Something that ends soon, perhaps while what depends on it is added to a queue.
    func beginSomething(for node: StressNode) -> Operation {
        let operation = AsyncBlockOperation { [self] finish in
            hop {
                self.spinRandomly(node.id + 2)
                finish(nil)
            }
        }
        tracker.track(operation, "what that waits for")
        operation.start()
        return operation
    }

    func end(ofSomethingFor node: StressNode) async {
        let operation = guarded { [self] locked in
            hop {
                locked { finish in
                    self.spinRandomly(node.id + 1)
                    finish(nil)
                }
            }
        }
        tracker.track(operation, "what \(node.name) awaits")
        switch node.id % 3 {
        case 0:
            operation.addDependency(beginSomething(for: node))
            try? await tracker.track(OperationQueue(), "the queue that \(node.name) awaits").run(operation)
        case 1:
            _ = await Coordinator().performOperations([operation])
        default:
            let numbers = ParallelItems(2, 1, .continueAll) { [self] _, completion in hop { completion(nil) } }
            _ = await numbers.performOperation(on: [1, 2, 3])
        }
    }

    /// An operation of another library that finishes in its own `cancel()`, which may come when its work has hardly begun.
    func foreignThatEndsInCancel(_ node: StressNode) -> ForeignOperation {
        let state = Shared((hasBegun: false, hasFinished: false, isLogged: false))
        let log = log
        /// Writes down the end of the work once, when the work has begun and the operation finishes.
        let note: @Sendable (_ begins: Bool) -> Void = { begins in
            state.change { state in
                if begins { state.hasBegun = true } else { state.hasFinished = true }
                guard state.hasBegun, state.hasFinished, !state.isLogged else { return }
                state.isLogged = true
                log.add(.ended(node.id))
            }
        }
        return ForeignOperation(endsInCancel: true, willFinish: { note(false) }) { [self] operation in
            begin(node)
            note(true)
            hop { operation.finish() }
        }
    }

    /// Works, and releases what ends the work, in the caller or on another thread.
    func lose<Output>(_ finish: FinishHandle<Output>, _ node: StressNode) {
        begin(node)
        let work: @Sendable () -> Void = { [self] in
            log.add(.ended(node.id))
            withExtendedLifetime(finish) {}
        }
        if node.id.isMultiple(of: 2) { work() } else { hop(work) }
    }
}
