import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// What depends on a failed operation runs, as in Foundation, unless it asks not to.
@Suite("requireSuccess", .hangGuard) struct RequireSuccessTests {
    private func run(_ operations: Operation...) async {
        await onThread { OperationQueue().addOperations(operations, waitUntilFinished: true) }
    }

    @Test("Without `requireSuccess(of:)` what depends on a failed operation runs") func notRequired() async {
        let failing = ScriptedOperation { $0.finish(withError: TestError.first) }
        let dependent = AsyncOperation()
        dependent.addDependency(failing)
        await run(failing, dependent)
        #expect(dependent.isFinished && dependent.error == nil)
    }

    @Test(
        "An operation that requires the success of another one runs after that has succeeded",
        arguments: ChildKind.allCases
    )
    func success(kind: ChildKind) async {
        let log = EventLog()
        let dependency = kind.make { log.add("dependency") }
        let operation = ScriptedOperation.logged(log)
        operation.requireSuccess(of: dependency)
        await run(operation, dependency)
        #expect(log.events == ["dependency", "main", "asyncCompletionBlock success"])
    }

    @Test(
        "An operation that requires the success of a cancelled one does not run, and its error names both",
        arguments: ChildKind.allCases
    )
    func cancellation(kind: ChildKind) async {
        let log = EventLog()
        let dependency = kind.make("dependency") {}
        let operation = ScriptedOperation("operation", main: { _ in log.add("main") })
        operation.requireSuccess(of: dependency)
        dependency.cancel()
        await run(operation, dependency)
        #expect(log.events.isEmpty)
        guard case DependencyError.dependencyFailed("operation", "dependency", _)? = operation.error else {
            Issue.record("\(String(describing: operation.error))")
            return
        }
    }

    @Test("All operations of a long chain end with the failure of the first one, and are freed on a small stack")
    func aChainCarriesItsRoot() async {
        await onThread(stackSize: workerStackSize) {
            var operations: [AsyncOperation] = [ScriptedOperation("first") { $0.finish(withError: TestError.first) }]
            for index in 1..<10_000 {
                let (operation, previous) = (ScriptedOperation("\(index)"), operations[index - 1])
                if index % 2 == 0 {
                    operation.requireSuccess(of: previous)
                } else {
                    operation.bind(\.name, to: previous, \.name)
                }
                operations.append(operation)
            }
            for operation in operations { operation.start() }
            for operation in operations.dropFirst() {
                guard case DependencyError.dependencyFailed(operation.name, "first", TestError.first)? = operation.error
                else {
                    Issue.record("\(String(describing: operation.error))")
                    return
                }
            }
            #expect(
                operations[2].error?.localizedDescription.hasPrefix(
                    "The operation “2” did not run, because “first” failed: ") == true)
        }
    }

    @Test("An operation that requires the success of a failed one ends with an error that wraps that error")
    func failure() async {
        let failing = ThrowingBlockOperation(name: "save") { throw TestError.first }
        let operation = ScriptedOperation("announce")
        operation.requireSuccess(of: failing)
        await run(operation, failing)
        guard case DependencyError.dependencyFailed("announce", "save", TestError.first)? = operation.error else {
            Issue.record("\(String(describing: operation.error))")
            return
        }
    }
}
