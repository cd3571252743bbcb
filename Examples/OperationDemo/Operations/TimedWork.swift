import Dispatch
import Foundation
import OperationKit

/// A correct asynchronous operation: it finishes when its work does, and stops its work when it is cancelled.
///
/// The work is a timer, which occupies no thread.
final class TimedWork: AsyncOperation, @unchecked Sendable {
    private let seconds: Double
    private let failure: (any Error)?
    private var timer: (any DispatchSourceTimer)?

    init(name: String, seconds: Double, failure: (any Error)? = nil) {
        self.seconds = seconds
        self.failure = failure
        super.init()
        self.name = name
    }

    override func main() {
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [self, failure] in
            // Releases the handler, and with it what keeps the operation alive.
            timer.cancel()
            finish(withError: failure)
        }
        timer.schedule(deadline: .now() + seconds)
        self.timer = timer
        timer.activate()
    }

    override func didCancel() {
        timer?.cancel()
        finish(withError: CancellationError())
    }
}
