import OperationKitTestSupport

@testable import OperationKit

@Suite("requireSuccess", .hangGuard) struct RequireSuccessTests {
    @Test("Without `requireSuccess(of:)` what depends on a failed operation runs") func notRequired() async {
        let failing = ScriptedOperation { $0.finish(withError: TestError.first) }
        let dependent = AsyncOperation()
        dependent.addDependency(failing)
        await runAll([failing, dependent])
        #expect(dependent.isFinished && dependent.error == nil)
    }

    @Test("What requires the success of another operation runs after that", arguments: ChildKind.allCases)
    func success(kind: ChildKind) async {
        let log = EventLog()
        let dependency = kind.make { log.add("dependency") }
        let operation = ScriptedOperation.logged(log)
        operation.requireSuccess(of: dependency)
        await runAll([operation, dependency])
        #expect(log.events == ["dependency", "main", "asyncCompletionBlock success"])
    }

    @Test("What requires the success of a cancelled operation does not run", arguments: ChildKind.allCases)
    func cancellation(kind: ChildKind) async {
        let log = EventLog()
        let dependency = kind.make("dependency") {}
        let operation = ScriptedOperation("operation", main: { _ in log.add("main") })
        operation.requireSuccess(of: dependency)
        dependency.cancel()
        await runAll([operation, dependency])
        #expect(log.events.isEmpty)
        #expect(brief(operation.error).hasPrefix("operation after dependency: "))
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
                let error = brief(operation.error)
                if error == "\(operation.name ?? "") after first: first" { continue }
                Issue.record("\(error)")
                return
            }
            #expect(
                operations[2].error?.localizedDescription.hasPrefix(
                    "The operation “2” did not run, because “first” failed: ") == true)
        }
    }
}

#if os(macOS) || os(Linux)
/// A required dependency, or a binding, that is added too late is ignored and reported. The handler and the level belong to
/// the process, so each of these has one of its own.
@Suite("Late dependencies", .hangGuard) struct LateDependencyTests {
    final class Target: ScriptedOperation, @unchecked Sendable { var value = 0 }

    private static func reports() -> Shared<[String]> {
        misuseReports { report in
            guard case .lateDependency(let operation, let dependency) = report else { return nil }
            return "\(operation), \(dependency): \(report)"
        }
    }

    private static func source() -> IOBlockOperation<Void, Int> {
        let source = IOBlockOperation<Void, Int>(name: "save") { 1 }
        source.start()
        return source
    }

    private static func addEach(to target: Target, _ source: IOBlockOperation<Void, Int>) {
        target.requireSuccess(of: source)
        target.bind(to: source) { _, _ in preconditionFailure("called") }
        target.bind(\.value, to: source, \.output!)
    }

    @Test("A requirement or a binding that is added after the start is ignored and reported, with both names")
    func afterTheStart() async {
        await #expect(processExitsWith: .success) {
            let reports = LateDependencyTests.reports()
            let source = LateDependencyTests.source()
            let (begun, ended) = (Gate(), Gate())
            let target = Target(main: { operation in
                begun.open()
                ended.pass()
                operation.finish()
            })
            target.name = "announce"
            async let end: Void = onThread { target.start() }
            await begun.opened()
            LateDependencyTests.addEach(to: target, source)
            ended.open()
            await end
            LateDependencyTests.addEach(to: target, source)
            MisuseReporter.shared.waitForReports()
            precondition(target.value == 0 && target.error == nil)
            precondition(reports.value.count == 6, "\(reports.value)")
            for report in reports.value {
                precondition(
                    report.hasPrefix("announce, save: OperationKit: The operation “announce” had started"), report)
                precondition(report.contains("“save”"), report)
            }
        }
    }

    @Test("A requirement or a binding that is added before the start is not reported, also after a cancellation")
    func beforeTheStart() async {
        await #expect(processExitsWith: .success) {
            let reports = LateDependencyTests.reports()
            let source = LateDependencyTests.source()
            for isCancelled in [false, true] {
                let target = Target { $0.finish() }
                if isCancelled { target.cancel() }
                target.requireSuccess(of: source)
                target.bind(\.value, to: source, \.output!)
                target.start()
                precondition(target.value == (isCancelled ? 0 : 1))
            }
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.isEmpty, "\(reports.value)")
        }
    }
}
#endif
