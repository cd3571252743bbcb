import OperationKitTestSupport

extension BlockedChildrenTests {
    /// What stands between an operation that failed and one that did not run because of it.
    enum Between: CaseIterable, Sendable {
        case compound, deepCompounds, gathered, mapped, mappedItself, step, firstStep, waterfall, recovery, rethrowing

        func make(of child: IOOperation<Void, Int>) -> AsyncOperation {
            switch self {
            case .compound:
                return CompoundOperation(name: "group", operations: [child, ThrowingBlockOperation(name: "own") {}])
            case .deepCompounds:
                return (0..<100).reduce(child as AsyncOperation) { inner, _ in
                    CompoundOperation(name: "group", operations: [inner])
                }
            case .gathered: return [child, TaskOperation { 1 }].gathered(name: "group")
            case .mapped: return [child].gathered(name: "group").map { $0.count }
            case .mappedItself: return child.map { $0 }
            case .firstStep: return MacroOperation(child).then(IOBlockOperation<Int, Int> { $0 })
            case .step:
                return MacroOperation([child].gathered(name: "group")).then(IOBlockOperation<[Int], Int> { $0.count })
            case .waterfall: return Waterfall<Void, Void>(name: "group").thenRun { [child].gathered() }
            case .recovery:
                return [child].gathered(name: "group").recoverRun { error -> TaskOperation<[Int]> in throw error }
            case .rethrowing: return ScriptedCompound("group", operations: [child])
            }
        }
    }

    @Test("What failed because of another child is counted with that", arguments: Between.allCases, [false, true])
    func countedThroughComposites(between: Between, isLast: Bool) async {
        let login = failing("login")
        let group = between.make(of: requiring("profile", login))
        let (after, later) = (requiring("after", group), requiring("later"))
        later.requireSuccess(of: after)
        var children: [Operation] = [group, later, after]
        children.insert(login, at: isLast ? 3 : 0)
        let error = await outcome(of: CompoundOperation(name: "sync", operations: children))
        #expect(summary(error) == [isLast ? "3 login 3" : "0 login 3"])
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first])
        #expect(group.error != nil)
        for operation in [after, later] { expectSkipped(operation.name, because: "login", operation.error) }
    }

    @Test("Groups that fail because of an operation outside are one failure, which the first one reports, at any depth")
    func groupsOutside() async {
        let login = failing("login")
        let groups = (0..<3).map { number in
            CompoundOperation(
                name: "\(number)", operations: [CompoundOperation(operations: [requiring("x", login)])])
        }
        let after = requiring("after", groups[2])
        let compound = CompoundOperation(name: "sync", operations: [after] + groups)
        OperationQueue().addOperation(login)
        let error = await outcome(of: compound)
        #expect(summary(error) == ["0 after 3"])
        expectSkipped("after", because: "login", error?.leafErrors.first)
    }

    @Test("A composite that passes on the failure of its own source is a failure, also for what waits for it")
    func sourceInside() async {
        let source = TaskOperation<Int>(name: "source") { throw TestError.first }
        let group = source.recoverRun { [unowned source] _ in requiring("made", source) }
        let error = await outcome(of: CompoundOperation(operations: [requiring("after", group), group]))
        #expect(summary(error) == ["1 source 1"])
    }

    @Test(
        "A group that is cancelled with a reason is a failure of its own, and with a mild one or none it is not",
        arguments: [TestError.reason, URLError(.cancelled), nil] as [(any Error)?])
    func reason(_ reason: (any Error)?) async {
        let login = failing("login")
        let idle = ScriptedOperation.idle("idle")
        let profile = requiring("profile", login)
        let group = CompoundOperation(name: "group", operations: [profile, idle])
        profile.asyncCompletionBlock = { _ in
            if let reason { group.cancel(withError: reason) } else { group.cancel() }
            idle.finish()
        }
        let error = await outcome(of: CompoundOperation(operations: [login, group, requiring("after", group)]))
        #expect(summary(error) == (reason is TestError ? ["0 login 0", "1 group 1"] : ["0 login 2"]))
    }

    @Test("The cause is found when it and all that failed before have been released", arguments: [false, true])
    func released(isGathered: Bool) async throws {
        let tracker = LeakTracker()
        do {
            let began = Gate()
            let last = ScriptedOperation("last") { _ in began.open() }
            let compound = CompoundOperation(name: "sync", maxConcurrentOperationCount: 1)
            do {
                let login = tracker.track(failing("login"))
                let profile = tracker.track(requiring("profile", login))
                let group = tracker.track(
                    isGathered ? [profile].gathered() : CompoundOperation(operations: [profile]) as AsyncOperation)
                last.addDependency(group)
                try compound.addOperations([login, group, last])
                let end = CompoundOperation(name: "end", operations: [requiring("after", group)])
                end.addDependency(last)
                try compound.addOperation(end)
            }
            async let error = outcome(of: compound)
            await began.opened()
            last.finish()
            #expect(await summary(error) == ["0 login 2"])
        }
        await tracker.expectAllReleased()
    }

    @Test("An error that looks like that of what did not run, but is about another operation, is a failure of its own")
    func unnamed() async {
        func failing(_ error: TestError) -> AsyncOperation {
            AsyncBlockOperation { finish in finish(error) }
        }
        let (a, b) = (failing(.first), failing(.second))
        let source = requiring("source", a)
        await onThread { b.start() }
        let blocked = Step<Void, Int>("source") { step, _ in step.finish(with: 1) }
        blocked.requireSuccess(of: b)
        await onThread { blocked.start() }
        let recovered = source.recover { _ in throw blocked.error ?? TestError.numbered(0) }
        let error = await outcome(of: CompoundOperation(operations: [a, recovered]))
        #expect(error?.suboperationErrors.map(\.index) == [0, 1])
    }

    @Test("A compound holds no cause outside any more when a child has failed by itself", arguments: [false, true])
    func heldCause(isFirst: Bool) async throws {
        let tracker = LeakTracker()
        let began = Gate()
        let last = ScriptedOperation("last") { _ in began.open() }
        let compound = CompoundOperation(name: "sync", maxConcurrentOperationCount: 1)
        do {
            let login = tracker.track(failing("login"))
            await onThread { login.start() }
            let blocked = requiring("blocked", login)
            let own = failing("own", .second)
            try compound.addOperations(isFirst ? [own, blocked, last] : [blocked, own, last])
        }
        async let error = outcome(of: compound)
        await began.opened()
        await tracker.expectAllReleased()
        last.finish()
        #expect(await summary(error).count == 2)
    }

    @Test("A group that was cancelled with a reason does not hold what blocked its children", arguments: [false, true])
    func causeOfACancelledGroup(isGathered: Bool) async {
        let tracker = LeakTracker()
        var group: AsyncOperation?
        do {
            let login = tracker.track(failing("login"))
            await onThread { login.start() }
            let idle = ScriptedOperation.idle("idle")
            let profile = requiring("profile", login)
            let made: AsyncOperation =
                isGathered
                ? [profile].gathered(name: "group")
                : CompoundOperation(name: "group", operations: [profile, idle])
            profile.asyncCompletionBlock = { [unowned made] _ in
                made.cancel(withError: TestError.reason)
                idle.finish()
            }
            group = made
            try? await OperationQueue().run(made)
        }
        #expect(summary(group?.error) == ["0 profile 0"])
        await tracker.expectAllReleased()
    }

    @Test("Operations on a queue are counted in the same way, and nothing private is thrown") func queue() async {
        let login = failing("login")
        let group = [requiring("profile", login)].gathered(name: "group")
        let error = await #expect(throws: CompoundOperationError.self) {
            try await OperationQueue().run([group, login, requiring("after", group)])
        }
        #expect(summary(error) == ["1 login 2"])
        let alone = [requiring("profile", login)].gathered(name: "alone")
        let own = await #expect(throws: CompoundOperationError.self) { _ = try await OperationQueue().run(alone) }
        #expect(summary(own) == ["0 profile 0"])
    }
}
