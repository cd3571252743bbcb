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
        try await operation.waitForFinish()
        #expect(brief(operation.error) == "work, 1: first")
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

    @Test(
        "An evaluation that cancels its own task cancels the operation, and one that cancels that does not fail it",
        arguments: ["task", "task, and throws", "operation, and throws"])
    func cancelledByItself(cancelled: String) async {
        let operation = logged(
            ClosureCondition(name: "cancelling") { operation in
                if cancelled == "operation, and throws" {
                    operation.cancel()
                    throw TestError.first
                }
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                if cancelled == "task, and throws" { try Task.checkCancellation() }
                return .satisfied
            })
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(operation.isCancelled && log.count(of: "main") == 0)
    }

    /// A condition whose prerequisite fails.
    private struct Unreachable: OperationCondition {
        func prerequisite(for operation: AsyncOperation) -> Operation? {
            ScriptedOperation("connect") { $0.finish(withError: TestError.first) }
        }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
    }

    @Test("Conditions combine; those that throw, or whose prerequisite fails, neither hold nor not", arguments: 0..<20)
    func combinations(index: Int) async throws {
        let (yes, no) = (condition("yes", .satisfied), condition("no", .failed(TestError.first)))
        let (skip, lost) = (condition("skip", .skipped), Unreachable())
        let throwing = ClosureCondition(name: "throwing") { _ in throw TestError.second }
        let satisfied = ConditionError.satisfied(operation: "work", condition: "yes")
        let negation = ConditionError.satisfied(operation: "work", condition: "yes and not no")
        let examples: [(ClosureCondition, String)] = [
            (.not(no), "success"), (.not(yes), "work, not yes: \(satisfied)"), (.not(skip), "cancelled"),
            (.all(), "success"), (.all(yes, yes), "success"), (.all(yes, no, skip), "work, yes and no and skip: first"),
            (.all(yes, skip, no), "cancelled"), (.any(yes), "success"), (.any(no, skip, yes), "success"),
            (.any(no, skip), "work, no or skip: first"), (.any(skip, skip), "cancelled"),
            (.not(.all(yes, .not(no))), "work, not yes and not no: \(negation)"),
            (.any(throwing, yes), "success"), (.any(lost, yes), "success"), (.any(lost, throwing, yes), "success"),
            (.any(lost, throwing), "work, Unreachable or throwing: second"),
            (.any(throwing, lost), "work, throwing or Unreachable, connect: first"),
            (.not(lost), "work, not Unreachable, connect: first"),
            (.all(yes, lost), "work, yes and Unreachable, connect: first"),
            (.not(throwing), "work, not throwing: second"),
        ]
        let operation = logged(examples[index].0)
        operation.start()
        try await operation.waitForFinish()
        #expect(brief(operation.error) == examples[index].1)
        #expect(ClosureCondition.all().name == "no condition")
    }

    @Test(
        "Ready-made conditions tell failures of dependencies from cancellations, on the thread that starts the operation",
        arguments: [false, true])
    func dependencies(isCancelled: Bool) {
        let source = ScriptedOperation("source") {
            $0.finish(withError: isCancelled ? CancellationError() : TestError.first as any Error)
        }
        source.start()
        let (needsNoFailure, needsNoCancellation) = (logged(.noFailedDependencies), logged(.noCancelledDependencies))
        for operation in [needsNoFailure, needsNoCancellation] {
            operation.addDependency(source)
            operation.start()
            #expect(operation.isFinished)
        }
        let (running, failed) =
            isCancelled ? (needsNoFailure, needsNoCancellation) : (needsNoCancellation, needsNoFailure)
        let name = isCancelled ? "no cancelled dependencies" : "no failed dependencies"
        #expect(running.error == nil)
        #expect(brief(failed.error) == "work, \(name): work after source: \(text(source.error))")
        // What depends on that has the first failure, not the errors of all before it.
        var last = failed
        for _ in 0..<3 {
            let next = logged(isCancelled ? .noCancelledDependencies : .noFailedDependencies)
            next.addDependency(last)
            next.start()
            #expect(brief(next.error) == brief(failed.error))
            last = next
        }
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
