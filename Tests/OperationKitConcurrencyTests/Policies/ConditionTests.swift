import OperationKitTestSupport

@testable import OperationKit

@Suite("Conditions", .hangGuard) struct ConditionTests {
    private let log = EventLog()

    private func logged(_ conditions: any OperationCondition...) -> ScriptedOperation {
        let operation = ScriptedOperation.logged(log)
        operation.name = "work"
        for condition in conditions { operation.addCondition(condition) }
        return operation
    }

    private func condition(_ name: String, _ result: ConditionResult) -> ClosureCondition {
        ClosureCondition(name: name) { [log] _ in
            log.add(name)
            return result
        }
    }

    @Test("The first condition that fails ends the operation, with an error that names both and has the cause")
    func failed() async throws {
        let operation = logged(condition("1", .failed(TestError.first)), condition("2", .satisfied))
        operation.start()
        let error = await #expect(throws: ConditionError.self) { try await operation.finished() }
        guard case .failed("work", "1", TestError.first) = try #require(error) else { return #expect(Bool(false)) }
        #expect(log.events.first == "1" && log.events.count == 2 && !operation.isCancelled)
    }

    @Test("A condition that skips the operation ends it as cancelled, which is no failure of its compound")
    func skipped() async throws {
        let operation = logged(condition("weekday", .skipped))
        let compound = CompoundOperation(operations: [operation, ScriptedOperation()])
        compound.start()
        try await compound.finished()
        #expect(operation.isCancelled && operation.error is CancellationError)
        #expect(log.events == ["weekday", "asyncCompletionBlock cancelled"])
    }

    @Test("Cancelling during the evaluation ends the operation immediately, and cancels the evaluation")
    func cancelled() async throws {
        let (begun, stopped) = (Gate(), Gate())
        let operation = logged(
            ClosureCondition(name: "endless") { _ in
                begun.open()
                defer { stopped.open() }
                try await cancellation()
            })
        operation.start()
        await begun.opened()
        #expect(operation.debugDescription.hasSuffix("evaluating its condition “endless”"))
        operation.cancel()
        #expect(operation.isFinished && operation.error is CancellationError)
        await stopped.opened()
        #expect(log.events == ["asyncCompletionBlock cancelled"])
    }

    @Test("A compound is prepared and starts its children after its conditions, and is cancelled with them")
    func compound() async throws {
        let child = logged()
        let compound = CompoundOperation(operations: [child])
        compound.addCondition(condition("condition", .satisfied))
        compound.start()
        try await compound.finished()
        #expect(log.events == ["condition", "main", "asyncCompletionBlock success"])
        let (failing, spared) = (CompoundOperation(operations: []), logged())
        try failing.addOperation(spared)
        failing.addCondition(condition("no", .failed(TestError.first)))
        failing.start()
        await #expect(throws: ConditionError.self) { try await failing.finished() }
        #expect(spared.isFinished && log.count(of: "main") == 1)
    }

    @Test("An evaluation that cancels its own task cancels the operation", arguments: [false, true])
    func cancelledByItself(isThrowing: Bool) async {
        let operation = logged(
            ClosureCondition(name: "self") { _ in
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                if isThrowing { try Task.checkCancellation() }
                return .satisfied
            })
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(operation.isCancelled && log.count(of: "main") == 0)
    }

    @Test("An evaluation that cancels the operation and throws does not fail it") func cancelsAndThrows() async {
        let operation = logged(
            ClosureCondition(name: "cancelling") { operation in
                operation.cancel()
                throw TestError.first
            })
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(log.count(of: "main") == 0)
    }

    @Test("A ready-made condition is evaluated by the thread that starts the operation") func immediate() {
        let source = ScriptedOperation("source") { $0.finish(withError: TestError.first) }
        source.start()
        let (failing, running) = (logged(.noFailedDependencies), logged(.noCancelledDependencies))
        for operation in [failing, running] {
            operation.addDependency(source)
            operation.start()
        }
        #expect(failing.isFinished && failing.error is ConditionError && running.error == nil && running.isFinished)
    }

    /// A condition whose prerequisite fails.
    private struct Unreachable: OperationCondition {
        func prerequisite(for operation: AsyncOperation) -> Operation? {
            ScriptedOperation("connect") { $0.finish(withError: TestError.first) }
        }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
    }

    /// How an operation with a condition ends.
    private func outcome(_ condition: any OperationCondition) async throws -> String {
        let operation = logged(condition)
        operation.start()
        try await operation.waitForFinish()
        switch operation.error as? ConditionError {
        case .failed("work", let name, let error)?: return "\(name): \(text(error))"
        case .prerequisiteFailed("work", let name, "connect", let error)?: return "\(name), to connect: \(text(error))"
        default: return text(operation.error)
        }
    }

    @Test("Conditions combine; those that throw, or whose prerequisite fails, neither hold nor not", arguments: 0..<20)
    func combinations(index: Int) async throws {
        let (yes, no) = (condition("yes", .satisfied), condition("no", .failed(TestError.first)))
        let (skip, lost) = (condition("skip", .skipped), Unreachable())
        let throwing = ClosureCondition(name: "throwing") { _ in throw TestError.second }
        let satisfied = ConditionError.satisfied(operation: "work", condition: "yes")
        let negation = ConditionError.satisfied(operation: "work", condition: "yes and not no")
        let examples: [(ClosureCondition, String)] = [
            (.not(no), "success"), (.not(yes), "not yes: \(satisfied)"), (.not(skip), "cancelled"),
            (.all(), "success"), (.all(yes, yes), "success"), (.all(yes, no, skip), "yes and no and skip: first"),
            (.all(yes, skip, no), "cancelled"), (.any(yes), "success"), (.any(no, skip, yes), "success"),
            (.any(no, skip), "no or skip: first"), (.any(skip, skip), "cancelled"),
            (.not(.all(yes, .not(no))), "not yes and not no: \(negation)"),
            (.any(throwing, yes), "success"), (.any(lost, yes), "success"), (.any(lost, throwing, yes), "success"),
            (.any(lost, throwing), "Unreachable or throwing: second"),
            (.any(throwing, lost), "throwing or Unreachable, to connect: first"),
            (.not(lost), "not Unreachable, to connect: first"),
            (.all(yes, lost), "yes and Unreachable, to connect: first"), (.not(throwing), "not throwing: second"),
        ]
        #expect(try await outcome(examples[index].0) == examples[index].1)
        #expect(ClosureCondition.all().name == "no condition")
    }

    @Test("Conditions about dependencies tell failures from cancellations", arguments: [false, true])
    func dependencies(isCancelled: Bool) async throws {
        let source = ScriptedOperation("source") {
            $0.finish(withError: isCancelled ? CancellationError() : TestError.first as any Error)
        }
        let needsNoFailure = logged(.noFailedDependencies)
        let needsNoCancellation = logged(.noCancelledDependencies)
        let queue = OperationQueue()
        for operation in [needsNoFailure, needsNoCancellation] {
            operation.addDependency(source)
            queue.addOperation(operation)
        }
        queue.addOperation(source)
        try await needsNoFailure.waitForFinish()
        try await needsNoCancellation.waitForFinish()
        #expect((needsNoFailure.error == nil) == isCancelled && (needsNoCancellation.error == nil) != isCancelled)
        let failed = isCancelled ? needsNoCancellation : needsNoFailure
        guard case .dependencyFailed(_, "source", _)? = (failed.error as? ConditionError)?.cause as? DependencyError
        else { return #expect(Bool(false), "\(String(describing: failed.error))") }
    }

    @Test(
        "Each operation of a chain that a failure stops has that, not the errors of all before it",
        arguments: [false, true])
    func chain(isCancelled: Bool) async throws {
        let error: any Error = isCancelled ? CancellationError() : TestError.first
        let source = ScriptedOperation("source") { $0.finish(withError: error) }
        source.start()
        var last: AsyncOperation = source
        for _ in 0..<3 {
            let next = logged(isCancelled ? .noCancelledDependencies : .noFailedDependencies)
            next.addDependency(last)
            next.start()
            let cause = (next.error as? ConditionError)?.cause as? DependencyError
            guard case .dependencyFailed("work", "source", let inside)? = cause else {
                return #expect(Bool(false), "\(text(next.error))")
            }
            #expect(text(inside) == text(error))
            last = next
        }
    }

    @Test("A condition that is added after the start has no effect") func late() {
        let operation = ScriptedOperation.idle()
        operation.start()
        operation.addCondition(condition("late", .failed(TestError.first)))
        operation.finish()
        #expect(operation.error == nil && log.events.isEmpty)
    }

    @Test("Conditions are released when they have been evaluated, and with an operation that never ran") func release()
        async
    {
        let leaks = LeakTracker()
        do {
            let token = leaks.token("condition")
            let operation = leaks.track(
                logged(
                    ClosureCondition(name: "a") { _ in
                        token.use()
                        return .satisfied
                    }))
            operation.start()
            try? await operation.finished()
            leaks.track(ScriptedOperation()).addCondition(name: "b") { _ in
                token.use()
                return .satisfied
            }
        }
        await leaks.expectAllReleased()
    }
}

extension ConditionError {
    fileprivate var cause: (any Error)? {
        if case .failed(_, _, let error) = self { error } else { nil }
    }
}
