import OperationKitTestSupport

/// How failures are reported, and what users see of an error.
@Suite("Compound: errors", .hangGuard) struct CompoundErrorTests {
    private func failing(_ error: any Error, _ name: String? = nil) -> Operation {
        ThrowingBlockOperation(name: name) { throw error }
    }

    // MARK: - Failures

    @Test(
        "The errors of all children are reported together, in the order in which the children were added",
        arguments: [-1, 1, 2]
    )
    func orderOfAddition(limit: Int) async throws {
        let operations = (0..<12).map { index -> Operation in
            switch index % 4 {
            case 0: failing(TestError.numbered(index))
            case 1: ScriptedOperation { $0.finish(withError: TestError.numbered(index)) }
            case 2: AsyncBlockOperation { finish in DispatchQueue.global().async { finish(TestError.numbered(index)) } }
            default: BlockOperation {}
            }
        }
        let compound = CompoundOperation(name: "all", operations: operations, maxConcurrentOperationCount: limit)
        guard case .suboperationFailure("all", let errors) = await outcome(of: compound) else {
            return #expect(Bool(false), "The compound has to report its children.")
        }
        #expect(errors.map(\.index) == [0, 1, 2, 4, 5, 6, 8, 9, 10])
        #expect(errors.map { $0.error as? TestError } == errors.map { .numbered($0.index) })
    }

    @Test("A failure has the name of the child, or its type and index if it has none") func names() async {
        let compound = CompoundOperation(operations: [failing(TestError.first, "login"), failing(TestError.second)])
        let errors = await outcome(of: compound)?.suboperationErrors
        #expect(errors?.map(\.name) == ["login", "ThrowingBlockOperation 1"])
    }

    @Test("The failure of a child that was added while the compound runs is reported with its index")
    func addedWhileRunning() async throws {
        let compound = CompoundOperation(operations: [BlockOperation {}])
        try compound.addOperation(
            BlockOperation { [unowned compound] in
                expectNoError {
                    try compound.addOperation(ThrowingBlockOperation(name: "late") { throw TestError.first })
                }
            })
        let errors = await outcome(of: compound)?.suboperationErrors
        #expect(errors?.map(\.name) == ["late"])
        #expect(errors?.map(\.index) == [2])
        #expect(errors?.map(\.siblingCount) == [3])
    }

    // MARK: - Cancelling the remaining children

    @Test(
        "With `cancelRemaining` the first failure cancels the others, and only the failure is reported",
        arguments: [-1, 1]
    )
    func cancelRemaining(limit: Int) async throws {
        let others = (0..<3).map { _ in BlockOperation { Issue.record("It does not run.") } }
        let failing = ScriptedOperation("bad") { $0.finish(withError: TestError.first) }
        for other in others { other.addDependency(failing) }
        let compound = CompoundOperation(
            name: "some", operations: others + [failing], maxConcurrentOperationCount: limit,
            failurePolicy: .cancelRemaining)
        guard case .suboperationFailure("some", let errors) = await outcome(of: compound) else {
            return #expect(Bool(false), "The failure has to be reported, not the cancellations.")
        }
        #expect(errors.map(\.name) == ["bad"])
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

    @Test("With `cancelRemaining` a failure ends the compound although it is suspended")
    func suspendedMeanwhile() async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1, failurePolicy: .cancelRemaining)
        let never = BlockOperation { Issue.record("It does not run.") }
        try compound.addOperation(
            ScriptedOperation { [unowned compound] in
                compound.isSuspended = true
                $0.finish(withError: TestError.first)
            })
        try compound.addOperation(never)
        #expect(await outcome(of: compound)?.leafErrors.count == 1)
        #expect(never.isFinished)
    }

    // As an NSError

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
        let cases: [(CompoundOperationError, Int, String)] = [
            (.suboperationFailure(name: "c", errors: [failure]), 1, "“c”: 1 of 1 operation failed"),
            (.suboperationFailure(name: "c", errors: []), 1, "“c”: 0 operations failed."),
            (.cancelled(name: "c", errors: []), 2, "“c” was cancelled."),
            (.cancelled(name: "c", errors: [], reason: Reason()), 2, "“c” was cancelled (The user left)."),
            (.cancelled(name: "c", errors: [failure]), 2, "“c” was cancelled. Before that, 1 of 1 operation failed"),
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

    @Test("The errors of an addition name the operation and the compound") func additionErrors() {
        let errors: [CompoundAdditionError] = [
            .compoundFinished(operation: "child", compound: "parent"),
            .alreadyAdded(operation: "child", compound: "parent"),
        ]
        for (index, error) in errors.enumerated() {
            let error = error as NSError
            #expect(error.domain == "OperationKit.CompoundAdditionError")
            #expect(error.code == index + 1)
            #expect(error.localizedDescription.contains("“child”") && error.localizedDescription.contains("“parent”"))
        }
        #expect(
            errors[1].localizedDescription
                == "The operation “child” was not added to “parent”: it is a child already, contains “parent”, "
                + "or may wait for “parent”. Add a new operation, once, to one compound.")
    }

    @Test("A `SuboperationError` names the child and carries its error") func suboperationError() {
        let error = SuboperationError(name: "login", index: 3, error: TestError.first) as NSError
        #expect(error.domain == "OperationKit.SuboperationError")
        #expect(error.localizedDescription.contains("“login”"))
        #expect((error.userInfo[NSUnderlyingErrorKey] as? NSError)?.domain.hasSuffix("TestError") == true)
    }
}
