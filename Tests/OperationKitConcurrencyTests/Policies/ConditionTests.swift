import Foundation
import OperationKitTestSupport
import Testing

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

    @Test("An operation runs when its conditions are satisfied, which are evaluated in the order of their addition")
    func satisfied() async throws {
        let operation = logged(condition("1", .satisfied), condition("2", .satisfied))
        operation.addCondition(name: "3") { [log] operation in
            log.add("3 \(operation.isExecuting)")
            return .satisfied
        }
        operation.start()
        try await operation.finished()
        #expect(log.events == ["1", "2", "3 true", "main", "asyncCompletionBlock success"])
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
        #expect(operation.debugDescription.hasPrefix("“work”: evaluating its condition “endless”"))
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

    @Test("An alternative that throws, or whose prerequisite fails, has failed, and the next one is asked")
    func throwingAlternatives() async throws {
        struct Unreachable: OperationCondition {
            func prerequisite(for operation: AsyncOperation) -> Operation? {
                ScriptedOperation("connect") { $0.finish(withError: TestError.first) }
            }

            func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
        }
        let yes = condition("yes", .satisfied)
        let throwing = ClosureCondition(name: "throwing") { _ in throw TestError.second }
        let alternatives: [ClosureCondition] = [
            .any(throwing, yes), .any(Unreachable(), yes), .any(Unreachable(), throwing, yes),
        ]
        for condition in alternatives {
            let operation = logged(condition)
            operation.start()
            try await operation.finished()
        }
        let failing = logged(.any(Unreachable(), throwing))
        failing.start()
        let failure = await conditionError(of: failing)
        guard case .failed("work", "Unreachable or throwing", TestError.second)? = failure else {
            return #expect(Bool(false), "\(text(failing.error))")
        }
        // It is not known whether what throws holds.
        for condition in [ClosureCondition.any(throwing, Unreachable()), .not(Unreachable()), .all(yes, Unreachable())]
        {
            let operation = logged(condition)
            operation.start()
            let failure = await conditionError(of: operation)
            guard case .prerequisiteFailed("work", condition.name, "connect", TestError.first)? = failure else {
                return #expect(Bool(false), "\(text(operation.error))")
            }
        }
        let negated = logged(.not(throwing))
        negated.start()
        let negatedFailure = await conditionError(of: negated)
        guard case .failed("work", "not throwing", TestError.second)? = negatedFailure else {
            return #expect(Bool(false), "\(text(negated.error))")
        }
        #expect(ClosureCondition.all().name == "no condition")
    }

    private func conditionError(of operation: AsyncOperation) async -> ConditionError? {
        try? await operation.waitForFinish()
        return operation.error as? ConditionError
    }

    @Test("Conditions combine", arguments: 0..<12) func combinations(index: Int) async throws {
        let (yes, no) = (ClosureCondition(name: "yes") { _ in .satisfied }, condition("no", .failed(TestError.first)))
        let skip = condition("skip", .skipped)
        let examples: [(any OperationCondition, String)] = [
            (.not(no), "success"), (.not(yes), "failed not yes"), (.not(skip), "cancelled"),
            (.all(), "success"), (.all(yes, yes), "success"), (.all(yes, no, skip), "failed yes and no and skip"),
            (.all(yes, skip, no), "cancelled"), (.any(yes), "success"), (.any(no, skip, yes), "success"),
            (.any(no, skip), "failed no or skip"), (.any(skip, skip), "cancelled"),
            (.not(.all(yes, .not(no))), "failed not yes and not no"),
        ]
        let operation = ScriptedOperation()
        operation.addCondition(examples[index].0)
        operation.start()
        try await operation.waitForFinish()
        let outcome: String
        if case .failed(_, let name, _)? = operation.error as? ConditionError {
            outcome = "failed \(name)"
        } else {
            outcome = text(operation.error)
        }
        #expect(outcome == examples[index].1)
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
