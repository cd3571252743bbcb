import OperationKitTestSupport

@testable import OperationKit

@Suite("OperationQueue.run", .hangGuard) struct RunTests {
    @Test("A dependency may finish while the queue asks whether the operation is ready", arguments: [true, false])
    func aDependencyThatFinishesDuringTheAdditionIsNoticed(isAwaited: Bool) async throws {
        let (queue, dependency, isFirst) = (OperationQueue(), ScriptedOperation.idle(), Shared(true))
        let answer = { @Sendable (isReady: Bool) in
            // After the answer was found, before it is known.
            if dependency.isExecuting, !isReady, isFirst.change({ exchange(&$0, with: false) }) { dependency.finish() }
            return isReady
        }
        let (stock, ours) = (AskedOperation { answer($1) }, AskedAsyncOperation { answer($1) })
        (isAwaited ? stock : ours).addDependency(dependency)
        dependency.start()
        if isAwaited {
            try await queue.run(stock)
        } else {
            queue.addOperation(ours)
            try await ours.finished()
        }
    }

    @Test("One of another class that ends when it is cancelled is not added after its end", arguments: [true, false])
    func endedByItsCancellation(isAlone: Bool) async throws {
        let (queue, operation) = (OperationQueue(), ForeignOperation("foreign", endsInCancel: true) { $0.finish() })
        await #expect(throws: (any Error).self) {
            try await inCancelledTask {
                if isAlone { try await queue.run(operation) } else { try await queue.run([operation]) }
            }
        }
        #expect(operation.isFinished)
    }

    @Test("In a cancelled task, operations end instead of being added", arguments: [true, false])
    func behindABarrier(isAlone: Bool) async throws {
        let (queue, work, operation) = (OperationQueue(), HeldWork(), ScriptedOperation())
        queue.addOperation { work() }
        queue.addBarrierBlock {}
        await #expect(throws: (any Error).self) {
            try await inCancelledTask {
                if isAlone { try await queue.run(operation) } else { try await queue.run([operation]) }
            }
        }
        #expect(operation.isCancelled)
        await eventually("it does not end") { operation.isFinished }
        work.mayEnd.open()
        try await queue.allOperationsFinished()
    }

    @Test("An operation that was started or is on the queue is rejected by name") func started() async throws {
        let (log, queue, fresh) = (EventLog(), OperationQueue(), ScriptedOperation("fresh"))
        let (typed, plain) = (TaskOperation(name: "typed") { 1 }, ChildKind.block.make("plain") {})
        let (executing, present) = (ScriptedOperation.logged(log) { _ in }, ScriptedOperation.idle("present"))
        executing.name = "executing"
        for operation in [typed, plain] { await Start.byHand(operation) }
        executing.start()
        queue.addOperation(present)
        for operation in [typed, plain, executing, present] {
            let error = OperationQueueError.cannotBeAdded(operation: operation.name ?? "")
            if operation !== present { await #expect(throws: error) { try await queue.run(operation) } }
            await #expect(throws: error) { try await queue.run([fresh, operation]) }
        }
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "typed")) { _ = try await queue.run(typed) }
        let twice = OperationQueueError.givenTwice(operation: "fresh")
        await #expect(throws: twice) { try await queue.run([fresh, fresh]) }
        #expect(queue.operations == [present] && executing.isExecuting && !executing.isCancelled)
        executing.finish()
        present.finish()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        try await queue.run([fresh])
        #expect(fresh.isFinished && !fresh.isCancelled)
    }

    @Test("Operations of all classes run by the limit and the dependencies, and the call returns after the last one")
    func everyClass() async throws {
        let (log, queue) = (EventLog(), OperationQueue.serial(name: "serial"))
        let operations = ChildKind.allCases.map { kind in kind.make { log.add("\(kind)") } }
        operations[0].addDependency(operations[2])
        try await queue.run(operations)
        #expect(operations.allSatisfy { $0.isFinished })
        #expect(Set(log.events) == Set(ChildKind.allCases.map { "\($0)" }))
        #expect(log.events.firstIndex(of: "asynchronous")! < log.events.firstIndex(of: "block")!)
        // Any sequence is taken, an empty one too.
        try await queue.run((0..<3).lazy.map { _ in BlockOperation { log.add("lazy") } })
        #expect(log.count(of: "lazy") == 3)
        queue.isSuspended = true
        try await queue.run(CollectionOfOne<Operation>(BlockOperation {}).dropFirst())
    }

    @Test("All failures are thrown together, in order, after all have run") func failures() async throws {
        let (log, queue) = (EventLog(), OperationQueue.serial(name: "uploads"))
        let inner = ThrowingBlockOperation(name: "inner") { throw TestError.second }
        let operations: [Operation] = [
            CompoundOperation(name: "nested", operations: [inner]),
            ThrowingBlockOperation(name: "first") { throw TestError.first }, BlockOperation { log.add("ran") },
        ]
        let error = await #expect(throws: CompoundOperationError.self) { try await queue.run(operations) }
        #expect(brief(error) == "uploads failed [0 nested, 1 first]" && log.events == ["ran"])
        #expect((error?.leafErrors ?? []).map { text($0) } == ["second", "first"])
        let sentence = error?.localizedDescription ?? ""
        #expect(sentence.hasPrefix("“uploads”: 2 of 3 operations failed: “nested”: 1 of 1 operation"), "\(sentence)")
    }

    @Test("A child on the private queue of its composite is refused by that") func childOnTheQueue() async {
        let queue = CompositeQueue()
        queue.childSettings = (1, true)
        let child = ChildKind.block.make("child") {}
        queue.addChild(child)
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "child")) { try await queue.run([child]) }
        queue.childSettings = (1, false)
        await eventually("the child has not run") { child.isFinished }
    }

    @Test("Cancelling the task cancels all, and the call returns after them", arguments: [false, true])
    func task(allSucceed: Bool) async {
        let (queue, work, waiting) = (OperationQueue.serial(name: "queue"), HeldWork(), ScriptedOperation())
        let failed = ThrowingBlockOperation(name: "failed") { throw TestError.first }
        let running = ThrowingBlockOperation { work() }
        let task = Task { try await queue.run(allSucceed ? [running] : [failed, running, waiting]) }
        await work.begun.opened()
        task.cancel()
        await eventually("they were not cancelled") { running.isCancelled && (allSucceed || waiting.isCancelled) }
        #expect(!waiting.isFinished)
        work.mayEnd.open()
        #expect(brief(await task.result.failure) == (allSucceed ? "success" : "queue cancelled [0 failed]"))
        #expect(running.isFinished)
    }

    @Test("An error that was given before is thrown in a cancelled task, too") func earlyError() async {
        let queue = OperationQueue.suspended()
        func run(_ prepare: (ScriptedOperation) -> Void) async -> (any Error)? {
            let operation = ScriptedOperation()
            prepare(operation)
            return await Task { try await inCancelledTask { try await queue.run(operation) } }.result.failure
        }
        #expect(await run { $0.finish(withError: TestError.first) } as? TestError == .first)
        // A cancellation that is an error of the user's.
        let cancelled = await run { $0.finish(withError: CocoaError(.userCancelled)) }
        #expect((cancelled as? CocoaError)?.code == .userCancelled)
        let reason = await run {
            $0.cancel(withError: TestError.reason)
            $0.finish(withError: CancellationError())
        }
        #expect(reason as? TestError == .reason)
        queue.isSuspended = false
    }

    @Test("An operation that only says that it is cancelled waits for its turn, and for its dependencies")
    func cancelledByItsWord() async throws {
        let (log, queue) = (EventLog(), OperationQueue.suspended())
        let operation = CancelledByItsWord {
            log.add("operation")
            $0.finish()
        }
        async let ended: Void = queue.run(operation)
        await eventually("it is not on the queue") { queue.operations.first === operation || operation.isFinished }
        log.add("resumed")
        queue.isSuspended = false
        try await ended
        let (first, child) = (ScriptedOperation(), CancelledByItsWord { $0.finish() })
        child.addDependency(first)
        let compound = CompoundOperation(operations: [child, BlockOperation { log.add("child: \(child.isFinished)") }])
        compound.start()
        await eventually("nothing runs") { log.events.count == 3 }
        first.start()
        try await compound.finished()
        #expect(log.events == ["resumed", "operation", "child: false"])
    }

    @Test("Operations that were cancelled are no failures, and no success of the call") func operations() async {
        let queue = OperationQueue.serial(name: "queue")
        let cancelled = [ScriptedOperation(), ScriptedOperation()]
        for operation in cancelled { operation.cancel() }
        let error = await #expect(throws: CompoundOperationError.self) { try await queue.run(cancelled) }
        #expect(brief(error) == "queue cancelled []")
        let operations = [ScriptedOperation(), ScriptedOperation("failing") { $0.finish(withError: TestError.first) }]
        operations[0].cancel()
        let failure = await #expect(throws: CompoundOperationError.self) { try await queue.run(operations) }
        #expect(brief(failure) == "queue failed [1 failing]")
    }
}
