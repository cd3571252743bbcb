import Dispatch
import Foundation

/// What not to do: an asynchronous operation without a life cycle of its own.
///
/// Foundation takes the end of `main()` for the end of the operation. So the queue goes on, dependents start and the completion
/// block is called while the work has only begun, and nothing can stop it any more.
final class NaiveWork: Operation, TrackedOperation, @unchecked Sendable {
    let track: Track
    private let work: Track
    private let seconds: Double

    init(track: Track, seconds: Double) {
        self.track = track
        work = track.work()
        self.seconds = seconds
        super.init()
        name = track.name
        completionBlock = { [track, work] in
            // Cancelled before its start, it has no work that could end.
            track.finishUnlessStarted()
            work.finishUnlessStarted()
        }
    }

    override func main() {
        track.started()
        work.started()
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [work] in work.finished() }
        track.finished()
    }

    override func cancel() {
        track.cancelled()
        super.cancel()
    }
}
