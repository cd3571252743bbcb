import OperationKitTestSupport

@Suite("Compound: cancellation", .hangGuard) struct CompoundCancellationTests {
    private func isCancelled(_ error: (any Error)?, reason: TestError? = nil) -> Bool {
        guard case .cancelled(_, let errors, let given) = error as? CompoundOperationError else { return false }
        return errors.isEmpty && given as? TestError == reason
    }

    private func ended(_ compound: CompoundOperation) async -> (any Error)? {
        try? await compound.finished()
        return compound.error
    }

    @Test(
        "When `cancel()` returns, every child is cancelled; those that had not started finish without running",
        arguments: ChildKind.allCases
    )
    func reachesEveryChild(_ kind: ChildKind) async {
        let log = EventLog()
        let running = ScriptedOperation.idle()
        let children = (0..<10).map { _ in kind.make { log.add("ran") } }
        for child in children { child.completionBlock = { log.add("completion") } }
        let compound = CompoundOperation(operations: [running] + children, maxConcurrentOperationCount: 1)
        await compound.start(until: running)
        compound.cancel()
        #expect(running.isCancelled && children.allSatisfy { $0.isCancelled } && !compound.isFinished)
        running.finish()
        #expect(isCancelled(await ended(compound)))
        #expect(children.allSatisfy { $0.isFinished })
        await eventually("completion blocks: \(log.events)") { log.count(of: "completion") == 10 }
        #expect(log.count(of: "ran") == 0)
    }

    @Test(
        "Once a compound is being cancelled, no child of a nested one starts because another child ends",
        arguments: [true, false])
    func nothingBeginsInside(isNested: Bool) async {
        let began = Gate()
        let (running, waiting) = (
            ScriptedOperation("running", main: { _ in began.open() }, didCancel: { $0.finish() }),
            ScriptedOperation("waiting")
        )
        let first = isNested ? CompoundOperation(operations: [running]) : running
        waiting.addDependency(first)
        let second = CompoundOperation(operations: [waiting])
        // Cancelled between the two, it lets other threads go on for a while.
        let slow = ScriptedOperation(
            main: { _ in },
            didCancel: { operation in
                let end = ContinuousClock.now + .milliseconds(100)
                while !waiting.isExecuting, !waiting.isFinished, .now < end { sched_yield() }
                operation.finish()
            })
        let compound = CompoundOperation(operations: [first, slow, second])
        compound.start()
        await began.opened()
        await eventually("not begun") { slow.isExecuting && second.isExecuting }
        compound.cancel()
        try? await compound.finished()
        #expect(waiting.error is CancellationError)
    }

    @Test(
        "A compound that is cancelled before its start neither prepares, executes nor runs a child, and ends after all")
    func beforeTheStart() async {
        let (log, wasExecuting) = (EventLog(), Shared(false))
        let compound = ScriptedCompound(prepare: { _ in log.add("prepared") })
        let children = ChildKind.allCases.map { kind in kind.make { log.add("ran") } }
        for case let child as AsyncOperation in children {
            child.asyncCompletionBlock = { [unowned compound] _ in
                if compound.isExecuting { wasExecuting.value = true }
            }
        }
        expectNoError { try compound.addOperations(children) }
        compound.asyncCompletionBlock = { _ in log.add(children.allSatisfy { $0.isFinished } ? "after" : "before") }
        compound.cancel(withError: TestError.reason)
        #expect(children.allSatisfy { $0.isCancelled && !$0.isFinished })
        OperationQueue().addOperation(compound)
        #expect(isCancelled(await ended(compound), reason: .reason))
        #expect(log.events == ["after"] && !wasExecuting.value)
    }

    @Test(
        "Cancelling a compound that is suspended, or has a limit of 0, ends it without running a child",
        arguments: [(-1, true), (0, true), (1, true), (0, false)])
    func endsSuspended(limit: Int, isSuspended: Bool) async {
        let children = ChildKind.allCases.map { $0.make { Issue.record("It does not run.") } }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: limit)
        compound.isSuspended = isSuspended
        await compound.start(until: compound)
        compound.cancel()
        #expect(isCancelled(await ended(compound)))
        #expect(compound.isSuspended == isSuspended)
        #expect(children.allSatisfy { $0.isFinished })
    }

    @Test("Cancelling in `prepare()` cancels the children that were added before and those that are added after")
    func inPrepare() async {
        let children = (0..<2).map { _ in BlockOperation { Issue.record("It does not run.") } }
        let compound = ScriptedCompound(prepare: { compound in
            try compound.addOperation(children[0])
            compound.cancel()
            #expect(children[0].isCancelled)
            try compound.addOperation(children[1])
            #expect(children[1].isCancelled)
        })
        OperationQueue().addOperation(compound)
        #expect(isCancelled(await ended(compound)))
    }
}
