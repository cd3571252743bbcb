import OperationKitTestSupport

@testable import OperationKit

@Suite("requireSuccess", .hangGuard) struct RequireSuccessTests {
    @Test("What requires a success runs after it, if there is one", arguments: ChildKind.allCases, [false, true])
    func success(kind: ChildKind, isCancelled: Bool) async {
        let log = EventLog()
        let dependency = kind.make("dependency") { log.add("dependency") }
        let operation = ScriptedOperation.named("operation", in: log)
        operation.requireSuccess(of: dependency)
        if isCancelled { dependency.cancel() }
        await runAll([operation, dependency])
        #expect(log.events == (isCancelled ? [] : ["dependency", "operation"]))
        #expect(brief(operation.error).hasPrefix(isCancelled ? "operation after dependency: " : "success"))
    }

    @Test("All operations of a long chain end with the failure of the first one, and are freed on a small stack")
    func aChainCarriesItsRoot() async {
        await onThread(stackSize: workerStackSize) {
            var operations = [ScriptedOperation("first") { $0.finish(withError: TestError.first) }]
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
            let strange = operations.enumerated().dropFirst().first {
                brief($1.error) != "\($0) after first: first"
            }
            #expect(strange == nil, "\(text(strange?.element.error))")
            let sentence = operations[2].error?.localizedDescription ?? ""
            #expect(sentence.hasPrefix("The operation “2” did not run, because “first” failed: "))
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

    @Test("A requirement or a binding after the start is ignored, and reported by name", arguments: [false, true])
    func afterTheStart(isCancelled: Bool) async {
        await #expect(processExitsWith: .success) { [isCancelled] in
            let (reports, source, early) = (LateDependencyTests.reports(), LateDependencyTests.source(), Target())
            if isCancelled { early.cancel() }
            early.requireSuccess(of: source)
            early.bind(\.value, to: source, \.output!)
            early.start()
            precondition(early.value == (isCancelled ? 0 : 1))
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.isEmpty, "\(reports.value)")
            let work = HeldWork()
            let target = Target("announce") { operation in
                work()
                operation.finish()
            }
            async let end: Void = onThread { target.start() }
            await work.begun.opened()
            LateDependencyTests.addEach(to: target, source)
            work.mayEnd.open()
            await end
            LateDependencyTests.addEach(to: target, source)
            MisuseReporter.shared.waitForReports()
            precondition(target.value == 0 && target.error == nil)
            precondition(reports.value.count == 6, "\(reports.value)")
            for report in reports.value {
                let start = "announce, save: OperationKit: The operation “announce” had started"
                precondition(report.hasPrefix(start) && report.contains("“save”"), report)
            }
        }
    }
}
#endif
