import OperationKitTestSupport

@Suite("Compound: children that did not run", .hangGuard) struct BlockedChildrenTests {
    func failing(_ name: String, _ error: TestError = .first) -> ThrowingBlockOperation {
        ThrowingBlockOperation(name: name) { throw error }
    }

    func requiring(_ name: String, _ others: Operation...) -> IOOperation<Void, Int> {
        let operation = Step<Void, Int>(name) { step, _ in
            Issue.record("\(name) runs")
            step.finish(with: 1)
        }
        for other in others { operation.requireSuccess(of: other) }
        return operation
    }

    /// What fails, what did not run because of it, and what a compound of all reports.
    private static let reports: [@Sendable (BlockedChildrenTests) -> (children: [Operation], report: [String])] = [
        // A binding keeps its target from running as a required success does, and a mere dependency does not.
        { tests in
            let (load, double) = (Step<Void, Int>.failing("load"), Step<Int, Int>("double") { _, _ in })
            double.bind(\.input, to: load, \.output)
            let cleanUp = tests.failing("clean up", .second)
            cleanUp.addDependency(load)
            return ([load, double, cleanUp], ["0 load 1", "2 clean up 0"])
        },
        // What a child ends with that did not run otherwise is its own failure.
        { tests in
            let login = tests.failing("login")
            let given = tests.requiring("given", login)
            given.finish(withError: TestError.second)
            let closure = Step<Int, Int>("closure") { _, _ in }
            closure.bind(to: login) { _, login in if let error = login.error { throw error } }
            return ([login, given, closure], ["0 login 0", "1 given 0", "2 closure 0"])
        },
        // By way of an operation outside.
        { tests in
            let first = tests.failing("first")
            let outside = tests.requiring("outside", first)
            OperationQueue().addOperation(outside)
            return ([tests.requiring("child", outside), first], ["1 first 1"])
        },
        // A cause outside is reported by the first child that it kept from running.
        { tests in
            let outside = tests.failing("outside")
            let chained = tests.requiring("chained", outside)
            for operation in [chained, outside] { OperationQueue().addOperation(operation) }
            let causes: [(String, Operation)] = [("a", outside), ("b", chained), ("c", outside)]
            return (causes.map { tests.requiring($0, $1) }, ["0 a 2"])
        },
        // Groups that fail because of an operation outside are one failure, at any depth.
        { tests in
            let login = tests.failing("login")
            let groups = (0..<3).map { _ in
                CompoundOperation(operations: [CompoundOperation(operations: [tests.requiring("x", login)])])
            }
            OperationQueue().addOperation(login)
            return ([tests.requiring("after", groups[2])] + groups, ["0 after 3"])
        },
        // A composite that passes on the failure of its own source is a failure, also for what waits for it.
        { tests in
            let source = TaskOperation<Int>(name: "source") { throw TestError.first }
            let group = source.recoverRun { [unowned source] _ in tests.requiring("made", source) }
            return ([tests.requiring("after", group), group], ["1 source 1"])
        },
        // A cause inside another child is counted with that child.
        { tests in
            let (step, login) = (Step<Void, Int>.failing("step"), tests.failing("login", .second))
            let macro = MacroOperation(step).then(Step<Int, Int> { _, _ in })
            macro.name = "macro"
            let inner = CompoundOperation(name: "inner", operations: [login])
            let causes: [(String, Operation)] = [("a", step), ("b", login), ("c", inner)]
            return (causes.map { tests.requiring($0, $1) } + [macro, inner], ["3 macro 1", "4 inner 2"])
        },
        // A cause inside a child that recovers from it is reported by the first child that it kept from running.
        { tests in
            let step = Step<Void, Int>.failing("step")
            return ([step.recover { _ in 7 }, tests.requiring("a", step), tests.requiring("b", step)], ["1 a 1"])
        },
        // A chain whose step required one before it that failed reports its own failure.
        { tests in
            let (first, second) = (Step<Void, Int>.failing("first"), Step<Int, Int>("second") { _, _ in })
            second.requireSuccess(of: first)
            let macro = MacroOperation(first).then(second)
            macro.name = "macro"
            return ([macro, tests.requiring("after", macro)], ["0 macro 1"])
        },
        // A group in which an operation failed by itself is a failure of its own.
        { tests in
            let login = tests.failing("login")
            let group = CompoundOperation(
                name: "group", operations: [tests.requiring("profile", login), tests.failing("own", .second)])
            return ([group, login, tests.requiring("after", group)], ["0 group 1", "1 login 0"])
        },
        // Operations that fail by themselves with equal errors are two failures.
        { tests in
            let (a, b) = (tests.failing("same"), tests.failing("same"))
            let groups = [a, b].map { CompoundOperation(name: "group", operations: [tests.requiring("x", $0)]) }
            return ([a, b] + groups, ["0 same 1", "1 same 1"])
        },
        // Two groups, in one of which is what the other one requires, are one failure.
        { tests in
            let login = tests.failing("login")
            let groups = [tests.requiring("x", login), login].map { CompoundOperation(name: "group", operations: [$0]) }
            return (groups, ["1 group 1"])
        },
        // A decision of a group that is no report of its children is a failure of its own.
        { tests in
            let login = tests.failing("login")
            let group = ScriptedCompound(
                "group", operations: [tests.requiring("profile", login)], decide: { _, _ in throw TestError.second })
            return ([login, group], ["0 login 0", "1 group 0"])
        },
    ]

    @Test("What did not run is counted with what failed, and nothing else is", arguments: reports.indices)
    func reported(index: Int) async {
        let (children, report) = Self.reports[index](self)
        #expect(await summary(outcome(of: CompoundOperation(operations: children))) == report)
    }

    @Test("Of several causes, the dependency that was added first counts") func severalCauses() async {
        let (a, b) = (failing("a"), failing("b", .second))
        let children = [a, b, requiring("both", b, a), requiring("one", a)]
        let compound = CompoundOperation(name: "c", operations: children, maxConcurrentOperationCount: 1)
        let error = await outcome(of: compound)
        #expect(summary(error) == ["0 a 1", "1 b 1"])
        let parts = error?.localizedDescription.components(separatedBy: "; 1 other did not run because of it") ?? []
        #expect(parts.count == 3 && parts[0].hasPrefix("“c”: 2 of 4 operations failed: “a”: "), "\(parts)")
    }

    @Test("A child that comes after the failure is counted with the first cause") func lateAddition() async throws {
        let first = failing("first")
        let blocked = requiring("blocked", first)
        let end = ScriptedOperation.idle("end")
        let compound = CompoundOperation(operations: [first, blocked, end])
        async let error = outcome(of: compound)
        await eventually("it is not blocked") { blocked.isFinished }
        try compound.addOperations([requiring("late", blocked), requiring("later", first)])
        end.finish()
        #expect(await summary(error) == ["0 first 3"])
    }

    @Test("A child that did not run because another one was cancelled counts as cancelled", arguments: [false, true])
    func cancelledSource(hasReason: Bool) async {
        let source = ScriptedOperation("source")
        let dependents = [requiring("a", source), requiring("b", source)]
        let chained = requiring("c", dependents[0])
        if hasReason { source.cancel(withError: TestError.reason) } else { source.cancel() }
        let error = await outcome(of: CompoundOperation(operations: [source, chained] + dependents))
        #expect(summary(error) == (hasReason ? ["0 source 3"] : []))
        #expect(chained.error is DependencyError && chained.error?.isCancellation == !hasReason)
    }

    @Test("Children that the policy cancels, also for a cause outside, are not counted", arguments: [false, true])
    func cancelRemaining(isOutside: Bool) async {
        let (login, running) = (failing("login"), ScriptedOperation.stoppable())
        let profile = requiring("profile", login)
        if isOutside { OperationQueue().addOperation(login) }
        let children = [running, profile] + (isOutside ? [] : [login])
        let error = await outcome(of: CompoundOperation(operations: children, failurePolicy: .cancelRemaining))
        #expect(summary(error) == [isOutside ? "1 profile 0" : "2 login 0"] && running.isCancelled)
        #expect(profile.error?.isCancellation == !isOutside)
    }
}
