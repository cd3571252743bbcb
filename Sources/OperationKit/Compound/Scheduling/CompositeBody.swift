import Foundation

/// The `async` body of a composite, as its scheduler knows it: the task, and the children that the body waits for.
///
/// The body counts as an unfinished child of the scheduler, see ``ChildStateMachine/hasRunningBody``. A failure of a child that
/// the body waits for is the body's to handle.
///
/// Where the system has task executors, the task runs on a thread of the library, with two exceptions that spare changes of
/// threads. It starts on the thread that starts the composite, if that belongs to an operation queue. And when a worker has started
/// the child that the body waits for, has seen it end and has nothing else to do, it runs the body up to its next `await`, and then
/// starts the next child.
final class CompositeBody: Sendable {
    typealias Continuation = CheckedContinuation<Void, Never>

    private struct State {
        var task: Task<Void, Never>?
        var stay: Stay?
        var isCancelled = false
        var hasEnded = false
        /// The outcome of the last child that did not run because of another operation.
        var skippedError: SkippedError?
        var sleeps: [String] = []
        var waits: [ObjectIdentifier: Continuation] = [:]
    }

    /// What a thread does that keeps a part of the body for itself.
    private struct Stay {
        let thread: ObjectIdentifier
        let isWorker: Bool
        var job: UnownedJob?
        /// Whether the body runs.
        var isRunning = false
        /// Whether it is about to wait for a child.
        var isSuspending = false
        var isWorkerRequested = false
    }

    private let state = Locked(State())

    /// Whether the body has been cancelled, with the composite or because that was given an outcome.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Whether the body has returned, so that nothing can wait in it any more.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    // MARK: - The task

    /// Creates the task, which is cancelled if the body is.
    func start(priority: TaskPriority, _ body: @escaping @Sendable () async -> Void) {
        let main: @Sendable () async -> Void = { [self] in
            // The task may begin before it is stored here.
            if self.isCancelled { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            await body()
        }
        let task =
            if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
                Task.detached(executorPreference: self, priority: priority, operation: main)
            } else {
                startLibraryTask(priority: priority, main)
            }
        let isCancelled = state.withLock { state in
            if !state.hasEnded { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// The children are cancelled, and the body with them.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    func ended() {
        _ = state.withLock { state in
            state.hasEnded = true
            return state.task.take()
        }
    }

    /// The outcome of the last child that did not run because of another operation. The composite may pass it on.
    var skippedError: SkippedError? {
        get { state.withLock { $0.skippedError } }
        set {
            // Released after unlocking; it may hold arbitrary operations.
            var previous = newValue
            state.withLock { swap(&previous, &$0.skippedError) }
        }
    }

    // MARK: - Sleeping

    /// What the body waits for, if it sleeps.
    var waitDescription: String? { state.withLock { $0.sleeps.last } }

    /// What the body does now, as an event of the composite.
    var waitEvent: OperationEvent.Kind { waitDescription.map { .waiting(for: $0) } ?? .running }

    func sleepBegan(_ description: String) {
        state.withLock { $0.sleeps.append(description) }
    }

    /// - Returns: Whether the body waits for something else now, or for nothing.
    func sleepEnded(_ description: String) -> Bool {
        state.withLock { state in
            let index = state.sleeps.firstIndex(of: description)
            if let index { state.sleeps.remove(at: index) }
            return index == state.sleeps.endIndex
        }
    }

    // MARK: - Waiting for children

    /// Begins a wait for an operation that is about to become a child.
    ///
    /// - Returns: Whether nothing waits for it yet.
    func beganWait(for child: ObjectIdentifier, _ continuation: Continuation) -> Bool {
        state.withLock { state in
            if state.waits[child] != nil { return false }
            state.waits[child] = continuation
            if let stay = state.stay { state.stay?.isSuspending = stay.thread == ObjectIdentifier(Thread.current) }
            return true
        }
    }

    /// Whether the body waits for a child.
    func awaits(_ child: ObjectIdentifier) -> Bool {
        state.withLock { $0.waits[child] != nil }
    }

    /// A child has ended and given its place back, or could not be added.
    ///
    /// - Returns: Whether a worker is needed that was to run the body first: that may go on for long without a wait now.
    func childEnded(_ child: ObjectIdentifier) -> Bool {
        let (continuation, stay) = state.withLock { state in
            let stay = state.stay
            state.stay?.isSuspending = false
            state.stay?.isWorkerRequested = false
            return (state.waits.removeValue(forKey: child), stay)
        }
        continuation?.resume()
        return stay?.isWorkerRequested == true
    }
}

// What a body does.
extension ChildScheduler {
    /// A child that the body may wait for has ended and given its place back, or could not be added.
    func tellBody(ofEnd child: ObjectIdentifier) {
        if body?.childEnded(child) == true { sendWorker(priority: machine.withLock(\.readiness.places.workerPriority)) }
    }

    /// Whether the body is to run no more children, because the composite was cancelled.
    var isStopped: Bool { cancelsNewChildren || body?.isCancelled == true }

    /// Calls a synchronous closure of the user from the body: on the current thread, if that is none of the library's.
    func call<Value: Sendable>(_ closure: @escaping @Sendable () throws -> Value) async throws -> Value {
        if body?.isStaying == true { return try closure() }
        return try await runUserClosure(isOnLibraryThread: true, closure)
    }

    /// Returns when a child that was there before the body has ended, in whatever way, and was counted, which is after its end.
    func waitForEnd(of child: AsyncOperation) async {
        let id = ObjectIdentifier(child)
        await withCheckedContinuation { continuation in
            guard let body, body.beganWait(for: id, continuation) else { return continuation.resume() }
            if !isPresent(child) { tellBody(ofEnd: id) }
        }
    }

    /// Whether an operation is a child that has not ended.
    private func isPresent(_ operation: Operation) -> Bool {
        machine.withLock { $0.readiness.table.slot(of: operation) } != nil
    }

    /// Checks, without an effect, that the body may run an operation as a child.
    ///
    /// - Throws: An error, if the body has ended, or the operation belongs elsewhere.
    @discardableResult
    func requireNew(_ operation: Operation) throws -> (body: CompositeBody, composite: AsyncOperation) {
        let composite = self.operation
        guard let body, let composite, !body.hasEnded else {
            throw CompoundAdditionError.compoundFinished(
                operation: operation.displayName, compound: composite?.displayName ?? "compound")
        }
        // One that executes and is a composite waits for its children: if this is one of them, both would wait for each other.
        let isAtWork = (operation as? AsyncOperation)?.isComposite == true && operation.isExecuting
        // The failure of one that is there already is not the caller's to handle.
        if isAtWork || isPresent(operation) || composite.isInside(operation) || operation.isPart(of: self) {
            throw composite.alreadyAdded(operation)
        }
        return (body, composite)
    }

    /// Runs an operation as a child, and returns when it has ended, in whatever way, and has given its place back. Its failure is
    /// the caller's to handle.
    ///
    /// - Parameters:
    ///   - operation: An operation of any class.
    ///   - weight: Its share in the progress, which was counted before.
    /// - Throws: An error, if it cannot be added.
    func runChild(_ operation: Operation, weight: Int64 = 0) async throws {
        let (body, composite) = try requireNew(operation)
        let id = ObjectIdentifier(operation)
        var failure: (any Error)?
        await withCheckedContinuation { continuation in
            guard body.beganWait(for: id, continuation) else {
                failure = composite.alreadyAdded(operation)
                return continuation.resume()
            }
            do {
                try add([operation], weight: weight, to: composite, inPlaceOf: weight)
            } catch {
                failure = error
                tellBody(ofEnd: id)
            }
        }
        if let failure { throw failure }
        if let skippedError = operation.skippedError { body.skippedError = skippedError }
    }
}

// MARK: - Threads

extension CompositeBody {
    /// The current thread is about to start or resume the body, and calls ``run()`` then.
    ///
    /// - Parameter isWorker: Whether it can start children.
    func stay(asWorker isWorker: Bool) {
        let thread = ObjectIdentifier(Thread.current)
        state.withLock { if $0.stay == nil { $0.stay = Stay(thread: thread, isWorker: isWorker) } }
    }

    /// Runs the body on the current thread up to its next `await`, if it was started or resumed since ``stay(asWorker:)``.
    ///
    /// - Returns: Whether a worker was requested meanwhile, which this thread has to be.
    func run() -> Bool {
        let thread = ObjectIdentifier(Thread.current)
        let job = state.withLock { state -> UnownedJob? in
            guard state.stay?.thread == thread else { return nil }
            state.stay?.isRunning = true
            return state.stay?.job
        }
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            unsafe job?.runSynchronously(on: asUnownedTaskExecutor())
        }
        return state.withLock { $0.stay?.thread == thread && $0.stay.take()?.isWorkerRequested == true }
    }

    /// A worker is needed.
    ///
    /// - Returns: Whether a worker runs the body, which goes on with the children in a moment.
    func takesWorkerRequest() -> Bool {
        state.withLock { state in
            // One that does not wait now may go on for long.
            guard let stay = state.stay, stay.isSuspending, stay.isWorker else { return false }
            state.stay?.isWorkerRequested = true
            return true
        }
    }

    /// Whether the current thread runs the body.
    fileprivate var isStaying: Bool {
        let thread = ObjectIdentifier(Thread.current)
        return state.withLock { $0.stay?.thread == thread }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension CompositeBody: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isKept = state.withLock { state in
            guard let stay = state.stay, !stay.isRunning, stay.job == nil,
                stay.thread == ObjectIdentifier(Thread.current)
            else { return false }
            state.stay?.job = job
            return true
        }
        if isKept { return }
        LibraryExecutor.shared.perform { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
