import OperationKitTestSupport

@Suite("Compound: children", .hangGuard, .serialized) struct CompoundChildrenTests {
    @Test(
        "A compound leaves the completion blocks of its children alone, also replaced ones; each is called once",
        arguments: ChildKind.allCases
    )
    func completionBlocks(_ kind: ChildKind) async throws {
        let (log, called, replace) = (EventLog(), Gate(), Shared<@Sendable () -> Void>({}))
        let child = kind.make {
            replace.value()
            log.add("work")
        }
        let set: @Sendable (Operation, String) -> Void = { child, prefix in
            child.completionBlock = {
                log.add("\(prefix)completionBlock")
                called.open()
            }
            (child as? AsyncOperation)?.asyncCompletionBlock = { _ in log.add("\(prefix)asyncCompletionBlock") }
        }
        set(child, "replaced ")
        replace.value = { [unowned child] in set(child, "") }
        let compound = CompoundOperation(operations: [child])
        try await OperationQueue().run(compound)
        await called.opened()
        let own = child is AsyncOperation ? ["asyncCompletionBlock"] : []
        #expect(log.events.sorted() == own + ["completionBlock", "work"])
    }

    // MARK: - The end after the children

    @Test("A compound does not finish before the `main()` of a finished child has returned")
    func mainOnTheStack() async throws {
        let (isFinished, mayReturn) = (Gate(), Gate())
        let child = ScriptedOperation {
            $0.finish()
            isFinished.open()
            mayReturn.pass()
        }
        let compound = CompoundOperation(operations: [child], maxConcurrentOperationCount: 1)
        OperationQueue().addOperation(compound)
        await isFinished.opened()
        #expect(child.isFinished && !compound.isFinished)
        mayReturn.open()
        try await compound.finished()
    }

    // MARK: - Adding children

    @Test("`prepare()` is called once, and what it and the `asyncCompletionBlock` of the last child add is run")
    func fromPrepare() async throws {
        let log = EventLog()
        let compound = ScriptedCompound(prepare: { compound in
            log.add("prepare")
            let child = ScriptedOperation.named("child", in: log)
            child.asyncCompletionBlock = { [unowned compound] _ in
                expectNoError { try compound.addOperation(BlockOperation { log.add("late") }) }
            }
            try compound.addOperation(child)
        })
        try await OperationQueue().run(compound)
        #expect(log.events == ["prepare", "child", "late"])
    }

    @Test("A compound ends with the error that `prepare()` throws, and no child runs") func prepareThrows() async {
        let child = BlockOperation { Issue.record("No child runs.") }
        let compound = ScriptedCompound(prepare: {
            try $0.addOperation(child)
            throw TestError.first
        })
        await #expect(throws: TestError.first) { try await OperationQueue().run(compound) }
        #expect(child.isFinished && child.isCancelled)
    }

    @Test("Adding to a finished compound, or in its `asyncCompletionBlock`, throws and leaves the operation alone")
    func addedAfterTheEnd() async throws {
        let compound = CompoundOperation(name: "done")
        let fromBlock = Shared<(any Error)?>(nil)
        compound.asyncCompletionBlock = { [unowned compound] _ in
            do { try compound.addOperation(BlockOperation {}) } catch { fromBlock.value = error }
        }
        try await OperationQueue().run(compound)
        let (first, late, ended) = (
            BlockOperation {}, ThrowingBlockOperation(name: "late") {}, ScriptedOperation("late")
        )
        ended.addDependency(first)
        try await OperationQueue().run([first, ended])
        let additions: [() throws -> Void] = [
            { try compound.addOperation(late) }, { try compound.addOperation(ended) },
            { try compound.addOperation(name: "late") {} },
            { try compound.addOperation(name: "late") { await Task.yield() } },
        ]
        for add in additions {
            #expect(throws: CompoundAdditionError.compoundFinished(operation: "late", compound: "done")) { try add() }
        }
        #expect(fromBlock.value is CompoundAdditionError)
        #expect(!late.isCancelled && !late.isFinished && ended.dependencies == [first])
        try await OperationQueue().run(CompoundOperation(operations: [late]))
    }

    @Test(
        "Adding a child again, an operation twice in one call, or a child of another compound, throws and adds nothing",
        arguments: ChildKind.allCases)
    func addedTwice(_ kind: ChildKind) throws {
        let child = kind.make("twin") {}
        let compound = CompoundOperation(name: "family", operations: [child])
        let expected = CompoundAdditionError.alreadyAdded(operation: "twin", compound: "family")
        #expect(throws: expected) { try compound.addOperation(child) }
        let other = kind.make("other") {}
        #expect(throws: CompoundAdditionError.alreadyAdded(operation: "other", compound: "family")) {
            try compound.addOperations([other, other])
        }
        #expect(compound.operationCount == 1)
        try compound.addOperation(other)
        // Of stock operations, compounds do not know what they belong to.
        guard child is AsyncOperation else { return }
        #expect(throws: CompoundAdditionError.alreadyAdded(operation: "twin", compound: "second")) {
            try CompoundOperation(name: "second").addOperation(child)
        }
    }

    @Test("Adding a child again after its end throws", arguments: [ChildKind.throwing, .asynchronous])
    func addedAgainAfterItsEnd(_ kind: ChildKind) async throws {
        let hold = ScriptedOperation.idle()
        let child = kind.make {}
        let compound = CompoundOperation(operations: [hold, child])
        OperationQueue().addOperation(compound)
        await eventually("not ended") { child.isFinished }
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(child) }
        await eventually("not begun") { hold.isAtWork }
        hold.finish()
        try await compound.finished()
    }

    @Test("A compound that is created with a child twice ends with an error, and no child runs")
    func createdWithDuplicate() async {
        let child = ThrowingBlockOperation(name: "twin") { Issue.record("No child runs.") }
        let compound = CompoundOperation(name: "family", operations: [BlockOperation {}, child, child])
        await #expect(throws: CompoundAdditionError.alreadyAdded(operation: "twin", compound: "family")) {
            try await OperationQueue().run(compound)
        }
        #expect(child.isFinished)
    }

    // MARK: - Finished children

    @Test(
        "A child that has finished before the start counts as finished, and its error is reported",
        arguments: [false, true]
    )
    func finishedChild(isSuspended: Bool) {
        let child = ThrowingBlockOperation { throw TestError.first }
        child.start()
        let compound = CompoundOperation(operations: [child])
        compound.isSuspended = isSuspended
        compound.start()
        #expect(compound.isFinished)
        #expect((compound.error as? CompoundOperationError)?.leafErrors.first as? TestError == .first)
    }

    // MARK: - Releasing children

    @Test("A compound, its children and their work are released after the end", arguments: ChildKind.allCases)
    func releasesEverything(_ kind: ChildKind) async throws {
        let tracker = LeakTracker()
        do {
            let token = tracker.token("work")
            let children = (0..<10).map { _ in tracker.track(kind.make { token.use() }) }
            for (child, next) in zip(children, children.dropFirst()) { next.addDependency(child) }
            let compound = tracker.track(CompoundOperation(operations: children))
            try await OperationQueue().run(compound)
        }
        await tracker.expectAllReleased()
    }

    @Test(
        "A child that has ended holds nothing that it depended on, also if that came after its addition",
        arguments: ChildKind.allCases, [false, true])
    func dependenciesReleased(_ kind: ChildKind, isLate: Bool) async throws {
        let first = ScriptedOperation.idle("first")
        let child = kind.make {}
        let compound = CompoundOperation(operations: [first], maxConcurrentOperationCount: 1)
        await compound.start(until: first)
        if !isLate { child.addDependency(first) }
        try compound.addOperation(child)
        if isLate { child.addDependency(first) }
        first.finish()
        try await compound.finished()
        #expect(child.isFinished && child.dependencies.isEmpty)
    }

    @Test("A child that had ended before its addition holds nothing that it depended on", arguments: [false, true])
    func endedBefore(isAddedLater: Bool) async throws {
        let first = BlockOperation {}
        let child = ScriptedOperation("child")
        child.addDependency(first)
        try await OperationQueue().run([first, child])
        #expect(child.dependencies == [first])
        let running = ScriptedOperation.idle("running")
        let compound = CompoundOperation(operations: isAddedLater ? [running] : [running, child])
        await compound.start(until: running)
        if isAddedLater { try compound.addOperation(child) }
        running.finish()
        try await compound.finished()
        #expect(child.dependencies.isEmpty)
    }
}
