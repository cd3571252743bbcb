#if os(macOS) || os(Linux)
import OperationKitTestSupport

/// Collects what a closure takes from the reports of misuse. The level and the handler belong to the process, so call this in a
/// process of the test's own, first of all.
func misuseReports<Value>(
    level: String = "starts", _ value: @escaping @Sendable (MisuseReport) -> Value?
) -> Shared<[Value]> {
    unsafe setenv("OPERATIONKIT_DIAGNOSTICS", level, 1)
    let reports = Shared<[Value]>([])
    OperationDiagnostics.handler = { report in
        if let value = value(report) { reports.change { $0.append(value) } }
    }
    return reports
}
#endif
