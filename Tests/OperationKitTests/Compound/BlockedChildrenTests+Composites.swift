import OperationKitTestSupport

@testable import OperationKit

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
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first] && group.error != nil)
        let description = error?.localizedDescription ?? ""
        #expect(description.hasPrefix("“sync”: 1 of 4 operations failed: “login”: "), "\(description)")
        #expect(description.hasSuffix("; 3 others did not run because of it."), "\(description)")
        #expect([after, later].map { brief($0.error) } == ["after after login: first", "later after login: first"])
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

    @Test(
        "The cause is found when it and all that failed before have been released, and one outside is not held",
        arguments: ["gathered", "compound", "outside, first", "outside, last"])
    func released(cause: String) async throws {
        let (tracker, began, isOutside) = (LeakTracker(), Gate(), cause.hasPrefix("outside"))
        do {
            let last = ScriptedOperation("last") { _ in began.open() }
            let compound = CompoundOperation(name: "sync", maxConcurrentOperationCount: 1)
            do {
                let login = tracker.track(failing("login"))
                let profile = tracker.track(requiring("profile", login))
                if isOutside {
                    await onThread { login.start() }
                    let children = [failing("own", .second), profile]
                    try compound.addOperations((cause.hasSuffix("first") ? children.reversed() : children) + [last])
                } else {
                    let group: AsyncOperation =
                        cause == "gathered" ? [profile].gathered() : CompoundOperation(operations: [profile])
                    last.addDependency(tracker.track(group))
                    let end = CompoundOperation(name: "end", operations: [requiring("after", group)])
                    end.addDependency(last)
                    try compound.addOperations([login, group, last, end])
                }
            }
            async let error = outcome(of: compound)
            await began.opened()
            if isOutside { await tracker.expectAllReleased() }
            last.finish()
            let failures = await summary(error)
            #expect(isOutside ? failures.count == 2 : failures == ["0 login 2"])
        }
        await tracker.expectAllReleased()
    }

    @Test("An error of the same names that is about another operation is a failure of its own") func unnamed() async {
        let (a, b) = (Step<Void, Int>.failing(), Step<Void, Int>.failing(nil, .second))
        let (source, blocked) = (requiring("source", a), requiring("source", b))
        await onThread { for operation in [b, blocked] as [AsyncOperation] { operation.start() } }
        let recovered = source.recover { _ in throw blocked.error ?? TestError.numbered(0) }
        let error = await outcome(of: CompoundOperation(operations: [a, recovered]))
        #expect(error?.suboperationErrors.map(\.index) == [0, 1])
    }

    @Test("A group that was cancelled with a reason does not hold what blocked its children", arguments: [false, true])
    func causeOfACancelledGroup(isGathered: Bool) async {
        let tracker = LeakTracker()
        var group: AsyncOperation?
        do {
            let (login, idle) = (tracker.track(failing("login")), ScriptedOperation.idle("idle"))
            await onThread { login.start() }
            let profile = requiring("profile", login)
            let made: AsyncOperation =
                isGathered ? [profile].gathered() : CompoundOperation(operations: [profile, idle])
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

    @Test(
        "Around a group that passes on what blocked its children, a cancellation counts if its reason says more",
        arguments: [false, true])
    func reasonAroundAGroup(saysMore: Bool) async {
        let login = failing("login")
        let (profile, idle) = (requiring("profile", login), ScriptedOperation.idle("idle"))
        let workflow = WorkflowOperation<Void, Void>(name: "page") { flow in
            try await flow.run(CompoundOperation(name: "group", operations: [profile, idle]))
        }
        profile.asyncCompletionBlock = { [unowned workflow] _ in
            workflow.cancel(withError: saysMore ? TestError.reason : CancellationError())
            idle.finish()
        }
        let error = await outcome(of: CompoundOperation(operations: [login, workflow]))
        #expect(summary(error) == (saysMore ? ["0 login 0", "1 page 0"] : ["0 login 1"]))
        #expect(workflow.error?.localizedDescription.contains("reason") == saysMore, "\(workflow)")
    }

    /// Counts how often it is asked for what is inside it.
    private struct LargeError: CustomNSError {
        static let asked = Shared(0)

        var errorUserInfo: [String: Any] {
            Self.asked.change { $0 += 1 }
            return [:]
        }
    }

    @Test("An error that is passed on is known without what is inside it") func largeError() async {
        let login = AsyncBlockOperation(name: "login") { finish in finish(LargeError()) }
        let profile = requiring("profile", login)
        let workflow = WorkflowOperation<Void, Void>(name: "page") { flow in try await flow.run(profile) }
        let error = await outcome(of: CompoundOperation(operations: [login, workflow]))
        #expect(summary(error) == ["0 login 1"] && LargeError.asked.value == 0, "\(LargeError.asked.value)")
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

@Suite("Failure collection") struct FailureCollectionTests {
    private let empty = FailureCollection(policy: .continueAll)

    private func failure(
        _ index: Int, _ error: any Error = TestError.first, of operation: Operation = Operation(),
        by cause: RootCause? = nil
    ) -> ChildFailure {
        ChildFailure(
            SuboperationError(name: "child \(index)", index: index, error: error), of: operation, cause: cause,
            isCancellation: error.isCancellation)
    }

    private func cause(_ operation: Operation) -> RootCause {
        RootCause(operation, error: TestError.first).inside(operation)
    }

    private func summary(_ failures: ChildFailures) -> [String] {
        failures.errors.map { "\($0.index): \($0.blockedCount)" }
    }

    @Test("An operation in the memory of a cause that is gone is another cause") func reusedMemory() {
        // The memory is used again sooner or later; no turn may count too many.
        for _ in 0..<1_000 {
            var failures = empty
            var first: Operation? = Operation()
            if let first { _ = failures.add(failure(0, of: first), isCancelling: false) }
            let other = Operation()
            _ = failures.add(failure(1, by: cause(other)), isCancelling: false)
            first = nil
            let second = Operation()
            _ = failures.add(failure(2, by: cause(second)), isCancelling: false)
            let taken = failures.take(ofChildren: 3)
            #expect(summary(taken) == ["0: 0", "1: 0", "2: 0"])
        }
    }

    @Test("What another report of a child replaces is released later, as that may run any code") func replaced() {
        var failures = empty
        let child = Operation()
        _ = failures.add(failure(0, of: child), isCancelling: false)
        _ = failures.add(failure(0, TestError.second, of: child), isCancelling: false)
        #expect(failures.discarded.count == 1 && summary(failures.take(ofChildren: 1)) == ["0: 0"])
    }

    @Test("The cause of the first child is passed on if all are outside, and no child failed itself") func passedOn() {
        func cause(_ name: String) -> RootCause {
            let operation = Operation()
            operation.name = name
            return RootCause(operation, error: TestError.second)
        }
        let (a, b) = (cause("a"), cause("b"))
        let both = [failure(2, by: a), failure(1, by: b), failure(3, by: b)]
        for (more, expected) in [
            ([], "b"), ([failure(0, by: a)], "a"), ([failure(0)], nil),
            ([failure(4, by: self.cause(Operation()))], nil),
            ([failure(4, of: b.operation)], nil), ([failure(0, CancellationError())], "b"),
        ] {
            for ends in [both + more, more + both] {
                var failures = empty
                for end in ends { _ = failures.add(end, isCancelling: false) }
                #expect(failures.take(ofChildren: 5).cause?.name == expected)
            }
        }
        var none = empty
        #expect(none.take(ofChildren: 5).cause == nil)
    }
}
