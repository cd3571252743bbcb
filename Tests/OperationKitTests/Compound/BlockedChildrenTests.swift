import OperationKitTestSupport

/// One cause is one failure, however many children it kept from running.
@Suite("Compound: children that did not run", .hangGuard) struct BlockedChildrenTests {
    func failing(_ name: String, _ error: TestError = .first) -> ThrowingBlockOperation {
        ThrowingBlockOperation(name: name) { throw error }
    }

    /// An operation that runs only after the success of others.
    func requiring(_ name: String, _ others: Operation...) -> IOOperation<Void, Int> {
        let operation = Step<Void, Int>(name) { step, _ in
            Issue.record("\(name) runs")
            step.finish(with: 1)
        }
        for other in others { operation.requireSuccess(of: other) }
        return operation
    }

    func expectSkipped(
        _ name: String?, because dependency: String, _ error: (any Error)?,
        _ location: SourceLocation = #_sourceLocation
    ) {
        guard case .dependencyFailed(name, dependency, TestError.first) = error as? DependencyError else {
            Issue.record("\(text(error))", sourceLocation: location)
            return
        }
    }

    // MARK: - Failures

    @Test("The children that did not run because of a failure are counted with it", arguments: [-1, 1])
    func counted(limit: Int) async {
        let login = failing("login")
        let children = ["profile", "photos", "notify"].map { requiring($0, login) }
        let compound = CompoundOperation(
            name: "sync", operations: children + [login], maxConcurrentOperationCount: limit)
        let error = await outcome(of: compound)
        #expect(summary(error) == ["3 login 3"])
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first])
        #expect(error?.localizedDescription.hasPrefix("“sync”: 1 of 4 operations failed: “login”: ") == true)
        #expect(error?.localizedDescription.hasSuffix("; 3 others did not run because of it.") == true)
        for child in children { expectSkipped(child.name, because: "login", child.error) }
    }

    @Test("Of several causes, the dependency that was added first counts")
    func severalCauses() async {
        let (a, b) = (failing("a"), failing("b", .second))
        let both = requiring("both", b, a)
        let one = requiring("one", a)
        let error = await outcome(of: CompoundOperation(name: "c", operations: [a, b, both, one]))
        #expect(summary(error) == ["0 a 1", "1 b 1"])
        let description = error?.localizedDescription ?? ""
        #expect(description.hasPrefix("“c”: 2 of 4 operations failed: “a”: "), "\(description)")
        #expect(description.components(separatedBy: "; 1 other did not run because of it").count == 3, "\(description)")
    }

    @Test("A child that depends on a failed one without requiring its success runs, and counts by itself")
    func plainDependency() async {
        let login = failing("login")
        let cleanUp = failing("clean up", .second)
        cleanUp.addDependency(login)
        let error = await outcome(of: CompoundOperation(operations: [login, cleanUp]))
        #expect(summary(error) == ["0 login 0", "1 clean up 0"])
    }

    @Test("A binding keeps its target from running as a required success does")
    func binding() async {
        let load = Step<Void, Int>("load") { step, _ in step.finish(withError: TestError.first) }
        let double = Step<Int, Int>("double") { step, input in step.finish(with: input) }
        double.bind(\.input, to: load, \.output)
        let error = await outcome(of: CompoundOperation(operations: [load, double]))
        #expect(summary(error) == ["0 load 1"])
    }

    @Test("A child that was added after the failure, and needs what did not run, is counted with the first cause")
    func lateAddition() async throws {
        let first = failing("first")
        let blocked = requiring("blocked", first)
        let end = ScriptedOperation.idle("end")
        let compound = CompoundOperation(operations: [first, blocked, end])
        let isBlocked = Gate()
        blocked.asyncCompletionBlock = { _ in isBlocked.open() }
        async let error = outcome(of: compound)
        await isBlocked.opened()
        try compound.addOperations([requiring("late", blocked), requiring("later", first)])
        end.finish()
        #expect(await summary(error) == ["0 first 3"])
    }

    @Test("What a child ends with that did not run otherwise is its own failure")
    func ownFailure() async {
        let login = failing("login")
        let given = requiring("given", login)
        given.finish(withError: TestError.second)
        let closure = Step<Int, Int>("closure") { _, _ in }
        closure.bind(to: login) { _, login in if let error = login.error { throw error } }
        let error = await outcome(of: CompoundOperation(operations: [login, given, closure]))
        #expect(summary(error) == ["0 login 0", "1 given 0", "2 closure 0"])
    }

    // MARK: - Cancellations

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

    @Test("Children that the policy cancels are not counted as blocked")
    func cancelRemaining() async {
        let login = failing("login")
        let profile = requiring("profile", login)
        let error = await outcome(
            of: CompoundOperation(operations: [profile, login], failurePolicy: .cancelRemaining))
        #expect(summary(error) == ["1 login 0"])
        #expect(profile.error is CancellationError)
    }

    // MARK: - Causes elsewhere

    @Test("A cause outside is reported by the first child that it kept from running")
    func outside() async {
        let outside = failing("outside")
        let queue = OperationQueue()
        let chained = requiring("chained", outside)
        let children = [requiring("a", outside), requiring("b", chained), requiring("c", outside)]
        let compound = CompoundOperation(name: "sync", operations: [ScriptedOperation()] + children)
        for operation in [chained, outside] { queue.addOperation(operation) }
        let error = await outcome(of: compound)
        #expect(summary(error) == ["1 a 2"])
        #expect(error?.leafErrors.first is DependencyError)
        #expect(error?.localizedDescription.hasSuffix("; 2 others did not run because of it.") == true)
    }

    @Test("A cause outside cancels the remaining children, where the policy says so")
    func outsideCancels() async {
        let outside = failing("outside")
        let running = ScriptedOperation.stoppable()
        let compound = CompoundOperation(
            operations: [running, requiring("a", outside)], failurePolicy: .cancelRemaining)
        OperationQueue().addOperation(outside)
        #expect(await summary(outcome(of: compound)) == ["1 a 0"])
        #expect(running.isCancelled && !compound.isCancelled)
    }

    @Test("A child that did not run because of a child, by way of an operation outside, is counted with that child")
    func throughOutside() async {
        let first = failing("first")
        let outside = requiring("outside", first)
        let child = requiring("child", outside)
        OperationQueue().addOperation(outside)
        #expect(await summary(outcome(of: CompoundOperation(operations: [child, first]))) == ["1 first 1"])
    }

    @Test("A cause inside another child is counted with that child")
    func insideAnotherChild() async {
        let step = Step<Void, Int>("step") { step, _ in step.finish(withError: TestError.first) }
        let macro = MacroOperation(step).then(Step<Int, Int> { _, _ in })
        macro.name = "macro"
        let login = failing("login", .second)
        let inner = CompoundOperation(name: "inner", operations: [login])
        let children = [requiring("a", step), requiring("b", login), requiring("c", inner)]
        let error = await outcome(of: CompoundOperation(operations: children + [macro, inner]))
        #expect(summary(error) == ["3 macro 1", "4 inner 2"])
        #expect(error?.localizedDescription.contains("; 2 others did not run because of “inner”") == true)
    }

    @Test("A cause inside a child that recovers from it is reported by the first child that it kept from running")
    func insideARecovery() async {
        let step = Step<Void, Int>("step") { step, _ in step.finish(withError: TestError.first) }
        let recovered = step.recover { _ in 7 }
        let children = [requiring("a", step), requiring("b", step)]
        let error = await outcome(of: CompoundOperation(operations: [recovered] + children))
        #expect(summary(error) == ["1 a 1"])
    }

    @Test("A chain whose step required one before it that failed reports its own failure")
    func insideAChain() async {
        let first = Step<Void, Int>("first") { step, _ in step.finish(withError: TestError.first) }
        let second = Step<Int, Int>("second") { step, input in step.finish(with: input) }
        second.requireSuccess(of: first)
        let macro = MacroOperation(first).then(second)
        let error = await outcome(of: CompoundOperation(operations: [macro, requiring("after", macro)]))
        #expect(error?.suboperationErrors.map(\.index) == [0])
        #expect(error?.suboperationErrors.map(\.blockedCount) == [1])
    }

    @Test("Many causes and many children that did not run are counted in any order", arguments: [-1, 2])
    func many(limit: Int) async {
        let sources = (0..<100).map { failing("source \($0)", .numbered($0)) }
        let dependents = (0..<1_000).map { requiring("\($0)", sources[$0 % 100]) }
        let compound = CompoundOperation(operations: dependents + sources, maxConcurrentOperationCount: limit)
        let errors = await outcome(of: compound)?.suboperationErrors
        #expect(errors?.map(\.index) == Array(1_000..<1_100))
        #expect(errors?.allSatisfy { $0.blockedCount == 10 } == true)
    }
}
