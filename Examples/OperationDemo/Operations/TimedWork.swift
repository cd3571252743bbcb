import Dispatch
import Foundation
import OperationKit

/// A correct asynchronous operation: it finishes when its work does, and stops its work when it is cancelled.
///
/// The work is a timer, which occupies no thread.
final class TimedWork: AsyncOperation, ReportingOperation, @unchecked Sendable {
    let report: Reporter
    private let seconds: Double
    private let failure: (any Error)?
    private var timer: (any DispatchSourceTimer)?
    private let lock = NSLock()
    private var hasEnded = false

    init(report: Reporter, seconds: Double, failure: (any Error)? = nil) {
        self.report = report
        self.seconds = seconds
        self.failure = failure
        super.init()
        name = report.subject.name
        asyncCompletionBlock = { error in report(.asyncCompletion, error.map(sentence)) }
        report.followCompletion(of: self)
    }

    override func main() {
        report(.started)
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [self] in
            if let failure {
                conclude(.workFailed, failure)
            } else {
                conclude(.workFinished, nil)
            }
        }
        timer.schedule(deadline: .now() + seconds)
        self.timer = timer
        // Before the work can end: otherwise two threads would race for the place of this line in the log.
        report(.mainReturned)
        timer.activate()
    }

    override func didCancel() {
        conclude(.workCancelled, CancellationError())
    }

    /// Ends the operation, unless the work and its cancellation came at the same time and the other was first.
    private func conclude(_ stage: Stage, _ error: (any Error)?) {
        let isFirst = lock.withLock {
            defer { hasEnded = true }
            return !hasEnded
        }
        guard isFirst else { return }
        // Releases the handler, and with it what keeps the operation alive.
        timer?.cancel()
        report(stage, error.map(sentence))
        finish(withError: error)
    }
}
