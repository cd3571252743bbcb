import OperationKitTestSupport

@Suite("Compound: errors", .hangGuard) struct CompoundErrorTests {
    private func failing(_ error: any Error, _ name: String? = nil) -> Operation {
        ThrowingBlockOperation(name: name) { throw error }
    }

    @Test("All errors of children are reported, in the order of addition, by name or index", arguments: [-1, 1, 2])
    func orderOfAddition(limit: Int) async throws {
        let operations = (0..<12).map { index -> Operation in
            switch index % 4 {
            case 0: failing(TestError.numbered(index), index == 0 ? "login" : nil)
            case 1: ScriptedOperation { $0.finish(withError: TestError.numbered(index)) }
            case 2: AsyncBlockOperation { finish in DispatchQueue.global().async { finish(TestError.numbered(index)) } }
            default: BlockOperation {}
            }
        }
        let compound = CompoundOperation(name: "all", operations: operations, maxConcurrentOperationCount: limit)
        try compound.addOperation(
            BlockOperation { [unowned compound] in
                let late = { @Sendable () async throws in throw TestError.numbered(13) }
                expectNoError { try compound.addOperation(name: "late", late) }
            })
        let error = await outcome(of: compound)
        let errors = error?.suboperationErrors ?? []
        #expect(brief(error).hasPrefix("all failed [") && errors.map(\.index) == [0, 1, 2, 4, 5, 6, 8, 9, 10, 13])
        #expect(errors.map { $0.error as? TestError } == errors.map { .numbered($0.index) })
        #expect(errors[0].name == "login" && errors[3].name == "ThrowingBlockOperation 4")
        #expect(errors.last?.name == "late" && errors.allSatisfy { $0.siblingCount == 14 })
    }

    @Test("With `cancelRemaining` a failure cancels all others, also late ones", arguments: [-1, 1], [false, true])
    func cancelRemaining(limit: Int, isSuspended: Bool) async throws {
        let others = ChildKind.allCases.map { $0.make { Issue.record("It does not run.") } }
        let late = BlockOperation { Issue.record("It does not run.") }
        let compound = CompoundOperation(
            name: "some", operations: others, maxConcurrentOperationCount: limit, failurePolicy: .cancelRemaining)
        (others[2] as? AsyncOperation)?.asyncCompletionBlock = { [unowned compound] _ in
            expectNoError { try compound.addOperation(late) }
        }
        let failing = ScriptedOperation("bad") { [unowned compound] in
            compound.isSuspended = isSuspended
            $0.finish(withError: TestError.first)
        }
        for other in others { other.addDependency(failing) }
        try compound.addOperation(failing)
        #expect(brief(await outcome(of: compound)) == "some failed [6 bad]" && !compound.isCancelled)
        #expect((others + [late]).allSatisfy { $0.isCancelled && $0.isFinished })
    }

    @Test("An `NSError` has a domain, a code, a description and the children's errors") func nsError() async throws {
        let underlying = NSError(domain: "test", code: 7, userInfo: [NSLocalizedDescriptionKey: "It broke."])
        let inner = CompoundOperation(name: "pages", operations: [failing(underlying, "page 1"), BlockOperation {}])
        let compound = CompoundOperation(
            name: "sync", operations: [inner, BlockOperation {}, failing(TestError.first)])
        let report = try #require(await outcome(of: compound))
        #expect("\(report)" == report.localizedDescription)
        for failure in report.suboperationErrors { #expect("\(failure)" == failure.localizedDescription) }
        let error = report.nsError
        #expect(error.domain == "OperationKit.CompoundOperationError" && error.code == 1)
        #expect(error.localizedDescription.hasPrefix("“sync”: 2 of 3 operations failed: “pages”: 1 of 2 "))
        #expect(error.localizedDescription.contains("“page 1”: It broke"))
        let all = try #require(error.userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError])
        #expect(error.userInfo[NSUnderlyingErrorKey] as? NSError == all[0])
        #expect(all[0].userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError] == [underlying])
        #expect(all.count == 2 && all[0].domain == error.domain && all[1].domain.hasSuffix("TestError"))
    }

    @Test("Every compound error has a code and a sentence, which names each operation on a cycle") func cases() {
        func cycle(_ path: String...) -> CompoundOperationError { .dependencyCycle(name: "c", path: path) }
        let failure = SuboperationError(name: "a", index: 0, error: TestError.first, siblingCount: 1)
        let inner = CompoundOperationError.suboperationFailure(name: "inner", errors: [failure])
        let blocking = SuboperationError(name: "inner", index: 0, error: inner, blockedCount: 2)
        let cases: [(CompoundOperationError, Int, String)] = [
            (.suboperationFailure(name: "c", errors: [blocking]), 1, "; 2 others did not run because of “inner”."),
            (.suboperationFailure(name: "c", errors: [failure]), 1, "“c”: 1 of 1 operation failed"),
            (.suboperationFailure(name: "c", errors: []), 1, "“c”: 0 operations failed."),
            (.cancelled(name: "c", errors: []), 2, "“c” was cancelled."),
            (.cancelled(name: "c", errors: [], reason: Reason()), 2, "“c” was cancelled (The user left)."),
            (.cancelled(name: "c", errors: [failure]), 2, "“c” was cancelled. Besides, 1 of 1 operation failed"),
            (cycle("c"), 3, "“c” would wait for itself."), (cycle("a"), 3, "“c”: “a” would wait for itself."),
            (cycle(), 3, "“c”: operations would wait for each other in a cycle."),
            (
                cycle("a", "b", "d"), 3,
                "“c”: operations would wait for each other in a cycle: “a” waits for “b”, which waits for “d”, which "
                    + "waits for “a”. Remove one of these dependencies."
            ),
        ]
        for (error, code, sentence) in cases {
            #expect(error.nsError.code == code && error.errorCode == code)
            #expect(error.localizedDescription.contains(sentence))
            #expect((error as NSError).domain == CompoundOperationError.errorDomain)
        }
        #expect(cycle().leafErrors.count == 1)
        let itself = SuboperationError(name: "c", index: 0, error: cycle("c"))
        #expect(itself.localizedDescription == "“c” failed: “c” would wait for itself.")
    }

    private struct Reason: LocalizedError { let errorDescription: String? = "The user left." }

    private static let children: [@Sendable () -> AsyncOperation] =
        [
            { ScriptedOperation.idle() }, { TaskOperation {} },
            { CompoundOperation(operations: [ScriptedOperation.idle(), ScriptedOperation.idle()]) },
            { CompoundOperation(operations: [CompoundOperation(operations: [ScriptedOperation.idle()])]) },
            { Strategy.parallelItems.make { _, completion in completion(nil) }.makeOperation(on: [1, 2]) },
        ] + CompositeTests.Kind.allCases.map { kind in { kind.make(Step<Void, Int> { _, _ in }) } }

    private struct UserLeft: CancellableError { let isCancelled = true }

    @Test("The reason that cancels a child is its failure, unless it is a cancellation", arguments: children.indices)
    func reason(index: Int) async {
        for reason in [TestError.reason, CancellationError(), UserLeft()] as [any Error] {
            let isFailure = reason is TestError
            let child = Self.children[index]()
            child.name = "child"
            let other = isFailure ? ScriptedOperation.stoppable() : ScriptedOperation()
            let compound = CompoundOperation(operations: [other, child], failurePolicy: .cancelRemaining)
            child.cancel(withError: reason)
            let error = await outcome(of: compound)
            #expect(error?.suboperationErrors.map(\.name) == (isFailure ? ["child"] : nil))
            #expect(error?.leafErrors.map { $0 as? TestError } == (isFailure ? [.reason] : nil))
            #expect(other.isCancelled == isFailure && !compound.isCancelled)
            #expect(child.error?.isCancellation == !isFailure)
            #expect(isFailure || (child.error as? CompoundOperationError)?.leafErrors.isEmpty ?? true)
        }
    }

    @Test("The errors of a cancelled compound are those of its children, and then the reason", arguments: [1, 2])
    func order(levels: Int) async throws {
        let last = ScriptedOperation("last")
        let compound = CompoundOperation(
            name: "sync", operations: [failing(TestError.first, "a")], maxConcurrentOperationCount: 1)
        try compound.addOperation(name: "b") { [unowned compound] in
            compound.cancel(withError: TestError.reason)
            throw TestError.second
        }
        try compound.addOperation(last)
        let inner = levels == 1 ? compound : CompoundOperation(operations: [compound])
        let error = await outcome(of: CompoundOperation(operations: [inner]))
        #expect(brief(compound.error) == "sync cancelled (reason) [0 a, 1 b]" && last.error is CancellationError)
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first, .second, .reason])
    }
}

@Suite("Compound: decision about the outcome", .hangGuard) struct CompoundDecisionTests {
    /// What a child does, what other code does while the compound is asked, what that throws then, and what it is asked with.
    private typealias Case = (
        child: @Sendable (CompoundOperation) throws -> Void, meanwhile: @Sendable (CompoundOperation) -> Void,
        thrown: @Sendable (CompoundOperationError?) -> (any Error)?, asked: String, outcome: String
    )

    private static let failing: @Sendable (CompoundOperation) throws -> Void = { _ in throw TestError.first }
    private static let cancelling: @Sendable (CompoundOperation) -> Void = { $0.cancel(withError: TestError.reason) }
    private static let adding: @Sendable (CompoundOperation) -> Void = { compound in
        #expect(throws: CompoundAdditionError.self) { try compound.addOperation(BlockOperation()) }
    }
    private static let other = CompoundOperationError.suboperationFailure(name: "other", errors: [])

    private static let cases: [Case] = [
        (failing, { _ in }, { _ in nil }, asked: "sync failed [0 child]", outcome: "success"),
        ({ $0.cancel() }, { _ in }, { _ in nil }, asked: "sync cancelled []", outcome: "success"),
        ({ _ in }, { _ in }, { _ in TestError.first }, asked: "success", outcome: "first"),
        // What other code does takes effect, unless the compound throws an error of its own.
        ({ _ in }, cancelling, { _ in nil }, asked: "success", outcome: "sync cancelled (reason) []"),
        ({ _ in }, { $0.cancel() }, { _ in TestError.second }, asked: "success", outcome: "second"),
        ({ _ in }, cancelling, { _ in CancellationError() }, asked: "success", outcome: "sync cancelled (reason) []"),
        ({ _ in }, cancelling, { _ in other }, asked: "success", outcome: "sync cancelled (reason) []"),
        (failing, cancelling, { _ in TestError.second }, asked: "sync failed [0 child]", outcome: "second"),
        (failing, cancelling, { $0 }, asked: "sync failed [0 child]", outcome: "sync cancelled (reason) [0 child]"),
        (failing, { $0.cancel() }, { _ in CancellationError() }, "sync failed [0 child]", "sync cancelled [0 child]"),
        // The error of a child that ended with this one has no reason.
        (
            { $0.cancel(withError: TestError.reason) }, { _ in },
            { _ in CompoundOperationError.cancelled(name: "inner", errors: []) },
            asked: "sync cancelled (reason) []", outcome: "reason"
        ),
        ({ _ in }, { $0.finish(withError: TestError.first) }, { _ in nil }, asked: "success", outcome: "first"),
        ({ _ in }, adding, { _ in nil }, asked: "success", outcome: "success"),
    ]

    @Test("A compound is asked once, after its children, what to make of their errors", arguments: cases.indices)
    func decides(index: Int) async throws {
        let (log, example) = (EventLog(), Self.cases[index])
        let compound = ScriptedCompound(
            "sync",
            decide: { compound, error in
                log.add(brief(error))
                example.meanwhile(compound)
                if let error = example.thrown(error) { throw error }
            })
        try compound.addOperation(name: "child") { [unowned compound] in
            log.add("child")
            try example.child(compound)
        }
        try? await OperationQueue().run(compound)
        #expect(log.events == ["child", example.asked] && brief(compound.error) == example.outcome)
    }

    @Test("A compound without children is asked, too") func empty() async {
        let compound = ScriptedCompound(decide: { _, error in throw error == nil ? TestError.first : .second })
        await #expect(throws: TestError.first) { try await OperationQueue().run(compound) }
    }

    @Test(
        "A compound is not asked when no child could run, or when it was finished",
        arguments: ["prepare() threw", "finished by a child", "cancelled before", "finished before", "cycle"])
    func notAsked(reason: String) async {
        let compound = ScriptedCompound(
            prepare: { _ in if reason == "prepare() threw" { throw TestError.first } },
            decide: { _, _ in Issue.record("It is asked.") })
        let child = ScriptedOperation {
            if reason == "finished by a child" { compound.finish(withError: TestError.first) }
            $0.finish()
        }
        let other = AsyncOperation()
        other.addDependency(child)
        try? compound.addOperations([child, other])
        if reason == "cancelled before" { compound.cancel() }
        if reason == "finished before" { compound.finish(withError: TestError.first) }
        if reason == "cycle" { child.addDependency(other) }
        await #expect(throws: (any Error).self) { try await OperationQueue().run(compound) }
    }

    @Test("Failures of some children are dropped in one word, others keep their counts") func removal() async throws {
        let failing = ThrowingBlockOperation(name: "needed") { throw TestError.first }
        let dependent = ScriptedOperation("dependent")
        dependent.requireSuccess(of: failing)
        for others in [[failing, dependent], []] as [[Operation]] {
            let optional = ThrowingBlockOperation(name: "optional") { throw TestError.second }
            let sync = ScriptedCompound(
                "sync", operations: [optional] + others,
                decide: { if let error = $1?.removingFailures(where: { $0.name == "optional" }) { throw error } })
            let error = await outcome(of: sync)
            #expect(summary(error) == (others.isEmpty ? [] : ["1 needed 1"]))
            #expect(error?.suboperationErrors.first?.siblingCount ?? 3 == 3)
        }
        let cancelled = CompoundOperationError.cancelled(
            name: "sync", errors: [SuboperationError(name: "optional", index: 0, error: TestError.first)])
        #expect(cancelled.removingFailures { _ in true }?.isCancellation == true)
        let cycle = CompoundOperationError.dependencyCycle(name: "sync", path: ["a"])
        #expect(cycle.removingFailures { _ in true }?.localizedDescription == cycle.localizedDescription)
    }
}
