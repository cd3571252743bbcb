import Foundation

/// An operation that ends when some time has passed since its start.
///
/// ```swift
/// let pause = DelayOperation(for: .seconds(2))
/// let retry = TaskOperation(name: "retry") { 1 }
/// retry.addDependency(pause)
/// ```
///
/// No thread waits, but on a queue it takes a place. `OperationQueue.addOperation(_:after:clock:)` delays an operation without
/// one. Time is measured with ``AsyncOperation/clock``. Where the `sleep` of that throws, or returns early, the time counts as over.
/// Once its time runs it is kept until it ends, also without a queue.
///
/// Cancelling it while its time runs ends it immediately, with `CancellationError` or the reason. What depends on it then runs: use
/// ``AsyncOperation/requireSuccess(of:)`` where it must not.
public final class DelayOperation: AsyncOperation, @unchecked Sendable {
    /// The time from the start to the end.
    public let duration: Duration

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - duration: The time from the start to the end. With zero, or less, the operation ends when it starts.
    ///   - name: The name of the operation.
    public init(for duration: Duration, name: String? = nil) {
        self.duration = duration
        super.init()
        self.name = name
    }

    /// Does nothing: `start()` begins the delay.
    public override func main() {}

    override var waitDescription: String? { "waiting \(duration.clamped.shortText)" }

    override func startWork() {
        guard duration > .zero else { return _ = finish() }
        let deadline = timer.arm(for: self, after: duration) { ($0 as? AsyncOperation)?.finish() }
        // Keeps the operation until it ends, too: one that was started by hand may be held by nothing else.
        FinishObserver(self) { deadline.disarm() }
    }

    /// Ends the operation. Don't call this method yourself.
    public override func didCancel() {
        finish(withError: CancellationError())
    }
}
