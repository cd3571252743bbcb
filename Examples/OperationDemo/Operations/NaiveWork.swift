import Dispatch
import Foundation

/// What not to do: an asynchronous operation without a life cycle of its own.
///
/// Foundation takes the end of `main()` for the end of the operation. So the queue goes on, dependents start and the completion
/// block is called while the work has only begun, and nothing can stop it any more.
final class NaiveWork: Operation, ReportingOperation, @unchecked Sendable {
    let report: Reporter
    private let seconds: Double

    init(report: Reporter, seconds: Double) {
        self.report = report
        self.seconds = seconds
        super.init()
        name = report.subject.name
        report.followCompletion(of: self)
    }

    override func main() {
        report(.started)
        let workIsOver = report.expectEndOfWork()
        // Before the work can end, as in TimedWork.
        report(.mainReturned)
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [report] in
            report(.workFinished)
            workIsOver()
        }
    }
}
