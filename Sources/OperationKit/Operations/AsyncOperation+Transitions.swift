public import Foundation

// How an operation moves from state to state: ``Lifecycle`` decides, and what it decides is done here, without the lock. What an
// operation holds of what it requires is released with the lock held: nothing is called there.
extension AsyncOperation {
    /// Performs an action of the life cycle, and all that follows from it. Callers hold no lock.
    func perform(_ action: Lifecycle.Action?) {
        if action != nil { Trampoline.run { perform(action, &$0) } }
    }

    /// Performs an action of the life cycle. What follows for other operations is left in the list.
    func perform(_ action: Lifecycle.Action?, _ list: inout Trampoline) {
        var next = action
        while let action = next {
            next = nil
            switch action {
            case .announceExecution:
                let execution = ExecutionRecording.record(of: self)
                willChange("isExecuting")
                let (action, started) = withObservers { state, observers in
                    state.execution = execution
                    let action = state.lifecycle.becameExecuting()
                    return (action, action == .passGates ? state.note(.started, observers) : nil)
                }
                next = action
                didChange("isExecuting")
                send(started)
            case .passGates:
                // The usual case is decided here.
                let isAnnounced = announceMain(hasGates: false)
                next =
                    withState { isAnnounced || $0.gates == nil ? .some($0.lifecycle.gatesPassed()) : nil }
                    ?? passGates()
            case .runMain:
                if let children { children.start() } else { startWork() }
                next = withState { $0.lifecycle.mainReturned() }
            case .callDidCancel:
                // Observers may have ended it.
                if !isFinished { didCancel() }
            case .cancelSuperclass:
                super.cancel()
                // An end is held back until then, so that it cannot come before what the work is told.
                callCancellationHandlers()
                cancellationTookEffect()
                let (actions, cancelled) = withObservers { state, observers in
                    let actions = state.lifecycle.superclassCancelled()
                    let reason = state.lifecycle.cancellationReason
                    return (actions, state.note(.cancelled(reason: reason), observers))
                }
                send(cancelled)
                for action in actions { perform(action, &list) }
                parent?.childWasCancelled(self)
            case .repeatSuperclassCancel:
                super.cancel()
                next = withState { $0.lifecycle.cancelChildrenIfUnfinished }
            case .cancelChildren:
                // Another child that is cancelled first may end this operation, and its children refer to it unowned.
                list.add { self.ownChildren?.cancelAll(&$0) }
            case .drain:
                withdrawGates()
                drainChildren(&list)
            case .complete:
                complete(&list)
            }
        }
    }

    /// Delivers the outcome, then announces the end. Happens once, on the thread that ended the operation.
    private func complete(_ list: inout Trampoline) {
        var hasGates = false
        var execution: ExecutionRecord?
        var (block, progress, error, wasExecuting) = withState { state in
            defer { state.completion = nil }
            hasGates = state.gates != nil
            swap(&execution, &state.execution)
            return (state.completion, state.progress, state.lifecycle.outcome?.error, state.lifecycle.isExecuting)
        }
        execution?.hasEnded = true
        progress?.complete(unitCount: children?.unitCount)
        // An attempt that has begun ends after the block.
        if hasGates, !hasReachedMain { withdrawGates() }
        block?(error)
        block = nil
        if hasGates { withdrawGates() }
        releaseWork()
        let lease = hasGates ? takeLease(error: error) : nil
        // Before the end: to announce one, Foundation locks the operation and then its dependents, so that of a cycle of two that end at
        // the same time each would wait for the other.
        if !wasExecuting { detachFromDependencies() }

        // On Linux, Foundation listens only to `isExecuting` becoming true.
        #if canImport(ObjectiveC)
        if wasExecuting { willChange("isExecuting") }
        #endif
        willChange("isFinished")
        var (ended, others, handlers) = withObservers { state, observers in
            state.lifecycle.ended()
            #if !canImport(ObjectiveC)
            handOverCompletionBlock()
            #endif
            let ended = state.note(.finished(error: error), observers)
            // In one step with the end, and after it for those who observe both.
            return (ended, lease?.release(), state.cancellationHandlers.ended())
        }
        // Released without the lock; their deinitializers may run arbitrary code.
        handlers.removeAll()
        others?.forEach { $0.granted() }
        #if canImport(ObjectiveC)
        if wasExecuting { didChange("isExecuting") }
        #endif
        didChange("isFinished")
        send(ended)

        // Observers look for what depends on a hidden one behind it.
        let (observers, releasesDependencies) = withState {
            ($0.announced(), $0.hasHadDependencies && $0.parent != nil && !$0.isHidden)
        }
        if releasesDependencies { detachFromDependencies() }
        for observer in observers { observer.operationFinished(self, error: error, &list) }
    }

    /// Ends the operation. `onAcceptance` is called with the lock held, to store what belongs to the outcome.
    @discardableResult
    func finish(with outcome: Lifecycle.Outcome, onAcceptance: () -> Void = {}) -> Bool {
        let outcome = outcome.mapError(\.marked)
        let (isAccepted, action) = withState { state in
            let answer = state.lifecycle.finished(with: outcome)
            if answer.isAccepted { onAcceptance() }
            return answer
        }
        perform(action)
        #if DEBUG
        if !isAccepted { reportFinishAfterDefaultMain() }
        #endif
        return isAccepted
    }

    /// Asks the operation to stop, and says why.
    ///
    /// The same as `cancel()`, but where the operation would end with `CancellationError`, or with another error whose
    /// `isCancellation` is true, it ends with `error`. Any other outcome that the work itself reports stands. Only the
    /// first cancellation counts, with a reason or without. One that ends with a ``CompoundOperationError``, its own or
    /// that of another one which has no reason, has it in its `cancelled`.
    ///
    /// - Parameter error: The reason.
    public final func cancel(withError error: any Error) {
        cancel(reason: error)
    }

    /// Why the operation was cancelled: the error that ``cancel(withError:)`` was given, an ``OperationTimeoutError`` for example. `nil`
    /// if it was not cancelled, or without a reason.
    ///
    /// Can be read from any thread, at any time: in ``didCancel()``, to tell a timeout from the user's wish.
    public final var cancellationReason: (any Error)? {
        withState { $0.lifecycle.cancellationReason }
    }

    func cancel(reason: (any Error)?) {
        let reason = reason?.marked
        perform(withState { $0.lifecycle.cancelled(reason: reason) })
    }

    /// Cancels the operation, together with others. Cancelling what is inside of it is left to the list.
    func cancel(_ list: inout Trampoline) {
        perform(withState { $0.lifecycle.cancelled(reason: nil) }, &list)
    }
}

extension OperationQueue {
    /// Adds an operation, which may depend on others that end meanwhile.
    ///
    /// This is Foundation's method of the same name, which it calls. On Linux, that may never start an operation whose dependency ends
    /// while it is added. The compiler chooses this one for what it knows to be an ``AsyncOperation``. In a queue class of your own
    /// that overrides Foundation's, call `super` with an `Operation`.
    ///
    /// - Parameter operation: An operation that was not started and is on no queue.
    public func addOperation(_ operation: AsyncOperation) {
        addOperation(operation as Operation)
        if operation.withState(\.hasHadDependencies) { operation.announceReadiness() }
    }
}

extension Error {
    /// The error, marked if it says no more than that the operation was cancelled, as that of a stopped request does. Read it without a
    /// lock: the error may be of a user's type.
    var marked: any Error { isMarked || !isCancellation ? self : MarkedError(error: self) }
}

extension AsyncOperation {
    /// Suspends until the operation is finished, and throws the error it ended with.
    ///
    /// Any number of tasks may wait, before, during or after the run. They resume after `isFinished` has become true;
    /// for a finished operation the call returns immediately, once its observers know of the end, or another thread that is inside
    /// one is to tell them. Cancelling the waiting task ends the wait and leaves the operation alone.
    ///
    /// An operation that is never started never finishes: the wait then lasts until the waiting task is cancelled, and
    /// keeps the operation alive until then.
    ///
    /// - Throws: ``error``; for an operation that was cancelled before its start, `CancellationError` or the reason
    ///   given for the cancellation. `CancellationError` also when the waiting task is cancelled before the operation
    ///   is finished.
    public final func finished() async throws {
        try await waitForFinish()
        if let error { throw error }
    }

    /// Suspends until the operation is finished, whatever its outcome. Throws only when the waiting task is cancelled.
    func waitForFinish() async throws {
        if withState(\.isOver) { return }
        if await !wait(TaskWaiter()) { throw CancellationError() }
    }

    /// Suspends until the operation is finished, the waiting task is cancelled, or ``cancelWait(_:)`` is called.
    ///
    /// - Returns: Whether the operation is finished.
    func wait(_ waiter: TaskWaiter) async -> Bool {
        await withTaskCancellationHandler {
            await waitForFinishUncancellably(waiter)
        } onCancel: {
            SchedulingProbe.reach(.handlerBegan)
            cancelWait(waiter)
            SchedulingProbe.reach(.handlerEnded)
        }
    }

    /// Resumes a task that waits, or that is about to wait, unless the operation has finished.
    func cancelWait(_ waiter: TaskWaiter) {
        let continuation = withState { state -> TaskWaiter.Continuation? in
            if state.isOver { return nil }
            waiter.isCancelled = true
            _ = state.observers.remove(waiter)
            return waiter.continuation.take()
        }
        continuation?.resume(returning: false)
    }

    /// Suspends until the operation is finished, or ``cancelWait(_:)`` is called, whatever happens to the waiting task.
    @discardableResult
    func waitForFinishUncancellably(_ waiter: TaskWaiter = TaskWaiter()) async -> Bool {
        await withCheckedContinuation { resume($0, by: waiter) }
    }

    /// Resumes a continuation as soon as the wait is over, which it may be already.
    func resume(_ continuation: TaskWaiter.Continuation, by waiter: TaskWaiter) {
        let answer = withState { state -> Bool? in
            if waiter.isCancelled { return false }
            if state.isOver { return true }
            waiter.continuation = continuation
            state.observers.add(waiter)
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }
}

/// One wait of a task for the end of an operation, whose lock guards it.
///
/// The continuation is resumed exactly once. A wait can be cancelled before its continuation arrives, because a task's
/// cancellation handler may run first.
final class TaskWaiter: FinishObserving, @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Bool, Never>

    fileprivate var continuation: Continuation?
    fileprivate var isCancelled = false

    /// Without the lock: a wait is not cancelled after the end of the operation.
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) {
        continuation.take()?.resume(returning: true)
    }
}

/// What is still to be done for the composites around an operation that has changed, and for the operations inside it.
///
/// Composites may be nested to any depth, so one that cancels what is inside of it, or that ends because the last of its
/// children has, leaves this in a list instead of making nested calls, which would overflow the stack.
struct Trampoline {
    typealias Task = (inout Trampoline) -> Void

    private var tasks: [Task] = []

    /// Adds a task that is performed before those that are there.
    mutating func add(_ task: @escaping Task) {
        tasks.append(task)
    }

    /// Calls a closure, and performs what it adds, and what that adds, before returning. Callers hold no lock.
    static func run<Value>(_ body: (inout Trampoline) -> Value) -> Value {
        var list = Trampoline()
        let value = body(&list)
        while let task = list.tasks.popLast() { task(&list) }
        return value
    }
}
