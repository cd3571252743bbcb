#if os(macOS) || os(Linux)
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The level belongs to the process, so each of these has one of its own.
@Suite("Diagnostics: levels", .hangGuard) struct DiagnosticsProcessTests {
    @Test("At the level `all`, executing operations are listed, and reports have a call stack") func levelAll() async {
        await #expect(processExitsWith: .success) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "all", 1)
            let reports = Shared<[UnfinishedOperation]>([])
            OperationDiagnostics.handler = { report in
                if case .released(let operation) = report { reports.change { $0.append(operation) } }
            }
            do {
                let operation = ScriptedOperation.idle("upload")
                operation.start()
                let finished = ScriptedOperation()
                finished.start()
                precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [operation])
                precondition(OperationDiagnostics.operations(executingLongerThan: .seconds(1_000)) == [])
                precondition(OperationDiagnostics.callStack(of: operation).count > 1)
            }
            MisuseReporter.shared.waitForReports()
            precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [])
            precondition(reports.value.map(\.name) == ["upload"])
            precondition(reports.value[0].callStack.count > 1)
            precondition(reports.value[0].description.split(separator: "\n").count > 2)
        }
    }

    @Test("The usual handler prints the report to standard error") func usualHandler() async throws {
        let result = try await #require(
            processExitsWith: .success, observing: [\.standardErrorContent]
        ) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "starts", 1)
            do { ScriptedOperation.idle("upload").start() }
            precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [])
            MisuseReporter.shared.waitForReports()
        }
        let printed = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(printed.contains("OperationKit: “upload” (ScriptedOperation) was released while executing"))
    }

    @Test("At the level `off`, nothing is recorded or reported") func levelOff() async throws {
        let result = try await #require(
            processExitsWith: .success, observing: [\.standardErrorContent]
        ) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "off", 1)
            let operation = ScriptedOperation.idle("held")
            operation.start()
            precondition(operation.debugDescription == "“held”: executing")
            operation.finish()
            do { ScriptedOperation.idle("upload").start() }
            MisuseReporter.shared.waitForReports()
        }
        #expect(!String(decoding: result.standardErrorContent, as: UTF8.self).contains("upload"))
    }
}
#endif
