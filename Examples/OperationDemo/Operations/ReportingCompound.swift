import Foundation
import OperationKit

/// A compound that appears in the log. Its work is that of its children.
final class ReportingCompound: CompoundOperation, ReportingOperation, @unchecked Sendable {
    let report: Reporter
    let children: [any ReportingOperation]
    private let lock = NSLock()
    private var hasStarted = false

    init(report: Reporter, children: [any ReportingOperation], width: Int) {
        self.report = report
        self.children = children
        super.init(
            name: report.subject.name, operations: children, maxConcurrentOperationCount: width,
            failurePolicy: .continueAll)
        asyncCompletionBlock = { [unowned self] error in
            if lock.withLock({ hasStarted }) { report(Self.stage(for: error), error.map(sentence)) }
            report(.asyncCompletion, error.map(sentence))
        }
        report.followCompletion(of: self)
    }

    override func prepare() {
        lock.withLock { hasStarted = true }
        report(.started, counted(children.count, "operation"))
    }

    private static func stage(for error: (any Error)?) -> Stage {
        switch error {
        case nil: .workFinished
        case .some(CompoundOperationError.cancelled): .workCancelled
        case .some: .workFailed
        }
    }
}
