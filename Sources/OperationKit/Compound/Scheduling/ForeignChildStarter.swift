import Foundation

extension ChildScheduler {
    /// The queue was handed a child that is not ready. That keeps its place for as long as it may take Foundation, which tells one
    /// dependent after the other, to tell it that all that it depends on has finished. A class may not be ready by itself: an
    /// `AsyncOperation` is handed to the queue only in that case.
    func waitsOnQueue(_ child: ChildReference) {
        let operation = child.operation
        let isAboutToBeReady =
            !(operation is AsyncOperation) && !operation.dependencies.isEmpty
            && operation.unfinishedDependencies.isEmpty
        if isAboutToBeReady, type(of: operation) == BlockOperation.self { return }
        guard isAboutToBeReady, machine.withLock({ $0.keepsPlaceUnready(child) }) else {
            return _ = update { $0.waitsOnQueue(child) }
        }
        let delay = DelayOperation(for: .milliseconds(20))
        delay.hideFromObservers()
        delay.asyncCompletionBlock = { _ in
            let hasToWait = operation.hasToWait
            self.update { $0.waitsOnQueue(child, hasToWait: hasToWait) }
        }
        delay.start()
    }

    /// Starts an asynchronous child of another library. On Linux, a queue notices one that has ended without announcing it, and so
    /// does this. To announce an end twice does nothing.
    func startForeign(_ operation: Operation) {
        startOnWorker(operation)
        #if !canImport(ObjectiveC)
        if operation.isFinished { operation.didChangeValue(forKey: "isFinished") }
        #endif
    }
}

#if !canImport(ObjectiveC)
/// Takes the place of an asynchronous child of another library on the private queue, and starts the child once it is ready.
///
/// Such a child may finish at any moment, also inside its own `cancel()`, and a queue that it is on would trap, or go on using
/// it once it is freed. A child that is not ready in its turn is therefore not put on a queue, either. One whose dependencies
/// have all finished may still not be ready for a moment: Foundation tells the dependents of an operation one after the other.
///
/// Foundation tells only the queue of an operation that it has become ready, so the starter asks from time to time.
final class ForeignChildStarter: Operation, @unchecked Sendable {
    private struct State {
        /// The queue has called `start()`. Before that, the starter must not finish.
        var hasStarted = false
        var childHasEnded = false
    }

    private let child: ChildReference
    private let scheduler: ChildScheduler
    private let state = Locked(State())
    /// The deadline at which it is asked again.
    private let deadline = LatestDeadline()

    init(_ child: ChildReference, _ scheduler: ChildScheduler) {
        self.child = child
        self.scheduler = scheduler
        super.init()
        queuePriority = child.operation.queuePriority
    }

    override var isReady: Bool {
        super.isReady && (child.operation.isReady || child.operation.isCancelled || child.operation.isFinished)
    }

    override var isFinished: Bool { state.withLock { $0.hasStarted && $0.childHasEnded } }

    /// Cancels the child. The starter itself has to stay as it is until it has started the child.
    override func cancel() {
        child.operation.cancel()
    }

    override func start() {
        let begins = state.withLock { state in
            state.hasStarted = true
            return !state.childHasEnded
        }
        deadline.end()
        if begins { scheduler.startForeign(child.operation) }
    }

    /// Lets the queue look again after 1 ms, and again later, less and less often, until it has started this.
    func pollReadiness(after delay: Int = 1) {
        if state.withLock(\.hasStarted) { return }
        deadline.replace {
            DeadlineTimer.continuous.arm(for: self, after: .milliseconds(delay)) {
                guard let starter = $0 as? ForeignChildStarter else { return }
                starter.didChangeValue(forKey: "isReady")
                starter.pollReadiness(after: min(2 * delay, 50))
            }
        }
    }

    /// The child has ended. If the queue has not started this yet, it does soon, and finds the child ended.
    func childEnded() {
        let hasStarted = state.withLock { state in
            state.childHasEnded = true
            return state.hasStarted
        }
        didChangeValue(forKey: hasStarted ? "isFinished" : "isReady")
    }
}
#endif
