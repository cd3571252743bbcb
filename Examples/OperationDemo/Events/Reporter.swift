import Foundation
import OperationKit

/// One operation's access to the log.
struct Reporter: Sendable {
    let subject: Subject
    private let log: EventLog

    init(name: String, log: EventLog) {
        self.log = log
        subject = log.subject(named: name)
    }

    func callAsFunction(_ stage: Stage, _ detail: String? = nil) {
        log.record(stage, of: subject, detail: detail)
    }

    /// Reports the completion of an operation of any class, and has the log wait for it.
    func followCompletion(of operation: Operation) {
        log.expect()
        operation.completionBlock = { [self] in
            self(.completion)
            log.fulfil()
        }
    }

    /// Makes the log wait for the end of work that its operation does not wait for; call the result when it is over.
    func expectEndOfWork() -> @Sendable () -> Void {
        log.expect()
        return { [log] in log.fulfil() }
    }
}

/// An operation that appears in the log.
protocol ReportingOperation: Operation {
    var report: Reporter { get }
}

/// How a line of the log calls an error. That of a compound is only counted here: its errors have lines of their own.
func sentence(for error: any Error) -> String {
    switch error {
    case is CancellationError: "CancellationError"
    case CompoundOperationError.suboperationFailure(_, let errors): counted(errors.count, "error")
    default: error.localizedDescription
    }
}
