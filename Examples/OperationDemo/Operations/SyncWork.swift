import Dispatch
import Foundation
import OperationKit

/// A synchronous operation: its `main()` returns when its work is done, and occupies the queue's thread until then.
///
/// The work is a wait that a cancellation cuts short. It conforms to `FailableOperation`, so that a compound hears of its error.
final class SyncWork: Operation, ReportingOperation, FailableOperation, @unchecked Sendable {
    let report: Reporter
    private let seconds: Double
    private let failure: (any Error)?
    private let cancellation = DispatchSemaphore(value: 0)
    private let lock = NSLock()
    private var outcome: Result<Void, any Error>?

    init(report: Reporter, seconds: Double, failure: (any Error)? = nil) {
        self.report = report
        self.seconds = seconds
        self.failure = failure
        super.init()
        name = report.subject.name
        report.followCompletion(of: self)
    }

    /// An operation that was cancelled before its start has no outcome of its own.
    var error: (any Error)? {
        switch lock.withLock({ outcome }) {
        case .failure(let error): error
        case .success: nil
        case nil: isCancelled ? CancellationError() : nil
        }
    }

    override func main() {
        report(.started)
        if cancellation.wait(timeout: .now() + seconds) == .success {
            conclude(.failure(CancellationError()))
            report(.workCancelled)
        } else if let failure {
            conclude(.failure(failure))
            report(.workFailed, sentence(for: failure))
        } else {
            conclude(.success(()))
            report(.workFinished)
        }
        report(.mainReturned)
    }

    override func cancel() {
        super.cancel()
        cancellation.signal()
    }

    private func conclude(_ outcome: Result<Void, any Error>) {
        lock.withLock { self.outcome = outcome }
    }
}
