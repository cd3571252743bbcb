import Dispatch
import Foundation
import OperationKit
import OperationKitTimelines

/// A synchronous operation: its `main()` returns when its work is done, and occupies the queue's thread until then.
///
/// The work is a wait that a cancellation cuts short. It conforms to `FailableOperation`, so that a compound hears of its error.
final class SyncWork: Operation, TrackedOperation, FailableOperation, @unchecked Sendable {
    let track: Track
    private let seconds: Double
    private let failure: (any Error)?
    private let cancellation = DispatchSemaphore(value: 0)
    private let lock = NSLock()
    private var outcome: Result<Void, any Error>?

    init(track: Track, seconds: Double, failure: (any Error)? = nil) {
        self.track = track
        self.seconds = seconds
        self.failure = failure
        super.init()
        name = track.name
        // Of one that was cancelled before its start, this is the only trace.
        completionBlock = { [track] in track.finishUnlessStarted() }
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
        track.started()
        if cancellation.wait(timeout: .now() + seconds) == .success {
            conclude(.failure(CancellationError()), as: .cancelled)
        } else if let failure {
            conclude(.failure(failure), as: .failed("\(failure)"))
        } else {
            conclude(.success(()), as: .success)
        }
    }

    override func cancel() {
        track.cancelled()
        super.cancel()
        cancellation.signal()
    }

    private func conclude(_ outcome: Result<Void, any Error>, as end: OperationTimeline.Outcome) {
        lock.withLock { self.outcome = outcome }
        track.finished(end)
    }
}
