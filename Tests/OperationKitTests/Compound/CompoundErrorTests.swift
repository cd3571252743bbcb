import OperationKitTestSupport

@Suite("Compound: errors", .hangGuard) struct CompoundErrorTests {
    private func failing(_ error: any Error, _ name: String? = nil) -> Operation {
        ThrowingBlockOperation(name: name) { throw error }
    }

    @Test(
        "All errors of children are reported, in the order of their addition, by name, or by type and index",
        arguments: [-1, 1, 2])
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
                expectNoError { try compound.addOperation(name: "late") { throw TestError.numbered(13) } }
            })
        let error = await outcome(of: compound)
        let errors = error?.suboperationErrors ?? []
        #expect(brief(error).hasPrefix("all failed [") && errors.map(\.index) == [0, 1, 2, 4, 5, 6, 8, 9, 10, 13])
        #expect(errors.map { $0.error as? TestError } == errors.map { .numbered($0.index) })
        #expect(errors[0].name == "login" && errors[3].name == "ThrowingBlockOperation 4")
        #expect(errors.last?.name == "late" && errors.allSatisfy { $0.siblingCount == 14 })
    }

    @Test(
        "With `cancelRemaining` the first failure cancels the others, and is all reported, although it is suspended",
        arguments: [-1, 1], [false, true])
    func cancelRemaining(limit: Int, isSuspended: Bool) async throws {
        let others = (0..<3).map { _ in BlockOperation { Issue.record("It does not run.") } }
        let compound = CompoundOperation(
            name: "some", operations: others, maxConcurrentOperationCount: limit, failurePolicy: .cancelRemaining)
        let failing = ScriptedOperation("bad") { [unowned compound] in
            compound.isSuspended = isSuspended
            $0.finish(withError: TestError.first)
        }
        for other in others { other.addDependency(failing) }
        try compound.addOperation(failing)
        #expect(brief(await outcome(of: compound)) == "some failed [3 bad]")
        #expect(others.allSatisfy { $0.isCancelled && $0.isFinished })
        #expect(!compound.isCancelled)
    }

    @Test("With `cancelRemaining` a child that is added after the failure is cancelled", arguments: [2, -1])
    func addedAfterFailure(limit: Int) async throws {
        let late = BlockOperation { Issue.record("It does not run.") }
        let compound = CompoundOperation(maxConcurrentOperationCount: limit, failurePolicy: .cancelRemaining)
        let isRunning = Gate()
        let running = ScriptedOperation(
            main: { _ in isRunning.open() },
            didCancel: { [unowned compound] in
                expectNoError { try compound.addOperation(late) }
                $0.finish(withError: CancellationError())
            })
        let failing = ThrowingBlockOperation {
            isRunning.pass()
            throw TestError.first
        }
        try compound.addOperations([running, failing])
        #expect(await outcome(of: compound)?.leafErrors.map { $0 as? TestError } == [.first])
        #expect(late.isCancelled && late.isFinished)
    }

    @Test("As an `NSError` the error has a domain, a code, a description and the errors of the children")
    func nsError() async throws {
        let underlying = NSError(domain: "test", code: 7, userInfo: [NSLocalizedDescriptionKey: "It broke."])
        let inner = CompoundOperation(name: "pages", operations: [failing(underlying, "page 1"), BlockOperation {}])
        let compound = CompoundOperation(
            name: "sync", operations: [inner, BlockOperation {}, failing(TestError.first)])
        let report = try #require(await outcome(of: compound))
        #expect("\(report)" == report.localizedDescription)
        for failure in report.suboperationErrors { #expect("\(failure)" == failure.localizedDescription) }
        let error = report.nsError

        #expect(error.domain == "OperationKit.CompoundOperationError")
        #expect(error.code == 1)
        #expect(error.localizedDescription.hasPrefix("“sync”: 2 of 3 operations failed: “pages”: 1 of 2 "))
        #expect(error.localizedDescription.contains("“page 1”: It broke"))
        let all = try #require(error.userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError])
        #expect(all.count == 2)
        #expect(error.userInfo[NSUnderlyingErrorKey] as? NSError == all[0])
        #expect(all[0].domain == "OperationKit.CompoundOperationError")
        #expect(all[0].userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError] == [underlying])
        #expect(all[1].domain.hasSuffix("TestError"))
    }

    @Test("Every compound error has a code and a sentence") func cases() {
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
            (.dependencyCycle(name: "c", path: ["a", "b"]), 3, "“a” waits for “b”, which waits for “a”."),
        ]
        for (error, code, sentence) in cases {
            #expect(error.nsError.code == code)
            #expect(error.errorCode == code)
            #expect(error.localizedDescription.contains(sentence))
            #expect((error as NSError).domain == CompoundOperationError.errorDomain)
        }
        #expect(CompoundOperationError.dependencyCycle(name: "c", path: []).leafErrors.count == 1)
    }

    @Test("The description of a cycle names each operation on it, and the compound") func cycles() {
        func text(_ path: String...) -> String {
            CompoundOperationError.dependencyCycle(name: "c", path: path).localizedDescription
        }
        let start = "“c”: operations would wait for each other in a cycle"
        let end = "Remove one of these dependencies."
        #expect(text("c") == "“c” would wait for itself.")
        #expect(text("a") == "“c”: “a” would wait for itself.")
        #expect(text("a", "c") == "\(start): “a” waits for “c”, which waits for “a”. \(end)")
        #expect(text("a", "b", "d") == "\(start): “a” waits for “b”, which waits for “d”, which waits for “a”. \(end)")
        #expect(text() == start + ".")
        let itself = CompoundOperationError.dependencyCycle(name: "c", path: ["c"])
        #expect(
            SuboperationError(name: "c", index: 0, error: itself).localizedDescription
                == "“c” failed: “c” would wait for itself.")
    }

    private struct Reason: LocalizedError {
        var errorDescription: String? { "The user left." }
    }

    private static let children: [@Sendable () -> AsyncOperation] =
        [
            { ScriptedOperation.idle() }, { TaskOperation {} },
            { CompoundOperation(operations: [ScriptedOperation.idle(), ScriptedOperation.idle()]) },
            { CompoundOperation(operations: [CompoundOperation(operations: [ScriptedOperation.idle()])]) },
            { Strategy.parallelItems.make { _, completion in completion(nil) }.makeOperation(on: [1, 2]) },
        ] + CompositeTests.Kind.allCases.map { kind in { kind.make(Step<Void, Int> { _, _ in }) } }

    private struct UserLeft: CancellableError {
        let isCancelled = true
    }

    @Test(
        "The reason is the failure of the child it was given to, and cancels others, unless it stands for a cancellation",
        arguments: children.indices)
    func reason(index: Int) async {
        for reason in [TestError.reason, CancellationError(), UserLeft()] as [any Error] {
            let isFailure = reason is TestError
            let child = Self.children[index]()
            child.name = "child"
            // It goes on until it is cancelled.
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

    @Test(
        "The error of a cancelled compound has those of its children, which are cancelled without the reason, and then that",
        arguments: [1, 2])
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
