import Foundation

extension AsyncOperation {
    /// All that changes in the life of an operation, as one value. The operation's lock guards it.
    struct State {
        var lifecycle: Lifecycle
        var completion: AsyncCompletionBlock?
        /// What is between `start()` and `main()`; `nil` if there never was anything.
        var gates: StartGates?
        /// What observers need; `nil` if none has seen the operation yet.
        var eventQueue: EventQueue?
        /// Created when it is first read.
        var progress: OperationProgress?
        /// What the work has registered for its own cancellation.
        var cancellationHandlers = CancellationHandlers()
        /// When and where the operation started to execute, until its end is delivered; `nil` if that is not recorded.
        var execution: ExecutionRecord?
        /// Notified once the operation is finished, after Foundation.
        var observers = FinishObservers()
        /// Whether the end has been announced to Foundation and to all observers.
        var isAnnounced = false
        /// Whether the operation was ever made dependent on another one. Foundation's list is behind a lock.
        var hasHadDependencies = false
        /// The children that the operation is one of.
        weak var parent: (any ChildGroup)?
        /// The slot of the operation in the ``ChildTable`` of its composite.
        var slot: Int?
        #if DEBUG
        /// Whether the default implementation of `main()` finished the operation.
        var hasFinishedInDefaultMain = false
        var wasFinishedAfterDefaultMain = false
        #endif

        /// Whether tasks that wait for the end go on: the operation has finished, and those who observe its events know.
        var isOver: Bool { lifecycle.isFinished && (isAnnounced || eventQueue == nil) }

        /// The gate that takes time, and has not been passed.
        var awaitedGate: (any StartGate)? { lifecycle.isWaiting ? gates?.current : nil }

        /// Returns the gates, which are created if there are none.
        mutating func requiredGates() -> StartGates {
            let required = gates ?? StartGates()
            gates = required
            return required
        }

        /// Foundation has been notified of the end. The caller notifies the waiters and observers that are returned.
        mutating func announced() -> [any FinishObserving] {
            isAnnounced = true
            return observers.removeAll()
        }
    }
}

extension Operation {
    /// Whether `cancel()` was called, also if a subclass of `AsyncOperation` says something else.
    var hasBeenCancelled: Bool { (self as? AsyncOperation)?.withState(\.lifecycle.isCancelled) ?? isCancelled }
}

extension AsyncOperation {
    /// Whether `main()` has been called, or is about to be.
    package var hasReachedMain: Bool { withState { $0.lifecycle.reachedMain } }

    // What a composite needs of its children, and of the operations that these depend on.

    /// Notifies an observer once, when the operation finishes, unless its end has been announced already.
    ///
    /// - Returns: The outcome, if it has been announced. Then the observer is not notified.
    func observeFinish(_ observer: any FinishObserving) -> Lifecycle.Outcome? {
        withState { state in
            if state.isAnnounced { return state.lifecycle.outcome }
            state.observers.add(observer)
            return nil
        }
    }

    /// The slot of the operation in the ``ChildTable`` of the composite to which it was added last.
    var slot: Int? {
        get { withState { $0.slot } }
        set { withState { $0.slot = newValue } }
    }
}

/// An object that is notified of the end of an operation: on the thread that ended it, after `isFinished` became true
/// and Foundation was notified.
protocol FinishObserving: AnyObject {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline)
}

/// The observers of the end of one operation, as a value.
///
/// Complexity: adding and removing an observer cost O(1), however many there are.
struct FinishObservers {
    /// The first one, as long as it is there. Usually there is no other.
    private var first: (any FinishObserving)?
    private var others: Others?

    /// A class, because few operations have others.
    private final class Others {
        /// Each with its number in the order of their addition. The observers are held here, so their identities are
        /// not used again.
        var observers: [ObjectIdentifier: (ordinal: Int, observer: any FinishObserving)] = [:]
        var added = 0
    }

    var isEmpty: Bool { first == nil && others?.observers.isEmpty != false }

    mutating func add(_ observer: any FinishObserving) {
        if isEmpty {
            first = observer
        } else if first !== observer {
            let others = others ?? Others()
            self.others = others
            others.added += 1
            others.observers[ObjectIdentifier(observer)] = (others.added, observer)
        }
    }

    /// - Returns: The observer, to be released after unlocking, unless it had been removed before.
    mutating func remove(_ observer: any FinishObserving) -> (any FinishObserving)? {
        if first === observer { return first.take() }
        return others?.observers.removeValue(forKey: ObjectIdentifier(observer))?.observer
    }

    /// Removes all observers.
    ///
    /// - Returns: The observers, in the order of their addition, and tasks after all others: when a task goes on, a composite has
    ///   counted the end, for example, unless the operation ended in its `start()`.
    mutating func removeAll() -> [any FinishObserving] {
        let earliest = first.take().map { [$0] } ?? []
        guard let others = others.take() else { return earliest }
        let all = earliest + others.observers.values.sorted { $0.ordinal < $1.ordinal }.map(\.observer)
        return all.filter { !($0 is TaskWaiter) } + all.filter { $0 is TaskWaiter }
    }
}

/// The handlers that work has registered for its own cancellation, as a value: which are due, and by which event.
///
/// Every handler comes out exactly once: to be called, or, where the work ends without a cancellation, to be released.
struct CancellationHandlers {
    typealias Handler = @Sendable () -> Void

    /// Those that have not been called; the last one is the next after the cancellation. `nil` after the end of the work.
    private var waiting: [Handler]? = []
    /// Whether the handlers are being called, or have been.
    private var isCancelled = false

    /// A handler was registered.
    ///
    /// - Returns: Whether it has to be called after those that wait. Otherwise it waits, or is dropped if the work has ended.
    mutating func added(_ handler: @escaping Handler) -> Bool {
        if isCancelled { return waiting != nil }
        waiting?.append(handler)
        return false
    }

    /// The work was cancelled. Called again after the call of each handler, by all threads that call some.
    ///
    /// - Returns: The handler to call, in the order of their registration; `nil` if there is none, or the work has ended.
    mutating func cancelled() -> Handler? {
        if !isCancelled { waiting?.reverse() }
        isCancelled = true
        return waiting?.popLast()
    }

    /// The work has ended.
    ///
    /// - Returns: The handlers to release after unlocking.
    mutating func ended() -> [Handler] { waiting.take() ?? [] }
}

extension Result where Failure == any Error {
    /// The error that users see.
    var error: (any Error)? {
        guard case .failure(let error) = self else { return nil }
        return error.shown
    }
}
