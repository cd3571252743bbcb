public import Foundation

/// An operation that finishes when its work says so, not when `main()` returns.
///
/// ```swift
/// final class Download: AsyncOperation, @unchecked Sendable {
///     private let url: URL
///     private var task: Task<Void, Never>?
///
///     init(_ url: URL) { self.url = url }
///
///     override func main() {
///         task = Task {
///             do {
///                 try await fetch(url)
///                 finish()
///             } catch {
///                 finish(withError: error)
///             }
///         }
///     }
///
///     override func didCancel() { task?.cancel() }
///
///     private func fetch(_ url: URL) async throws { /* … */ }
/// }
/// ```
///
/// ## The contract for subclasses
///
/// 1. Override ``main()``. Start the work there and return; do not block, and do not call `super`, which would finish the
///    operation. Debug builds report a `finish` that comes after that.
/// 2. Call ``finish(withError:)`` once the work is over, from any thread, inside `main()` or long after it. Every path
///    has to get there, or the operation never ends. Calling it more than once is harmless: the first call decides.
/// 3. Override ``didCancel()`` if the work can be stopped, and stop it there. It never runs at the same time as
///    `main()`, so whatever `main()` stored is there. Work that cannot be stopped may be left behind with
///    `finish(withError: CancellationError())`.
/// 4. Restate `@unchecked Sendable`, as every subclass of `Operation` has to, and mean it: `main()` and `didCancel()`
///    may run on different threads, though never at the same time.
///
/// A test that holds for every correct subclass:
///
/// ```swift
/// let operation = AsyncBlockOperation { finish in finish() }   // yours
/// let queue = OperationQueue()
/// try await queue.run(operation)
/// assert(operation.isFinished && operation.error == nil)
/// ```
///
/// ## What happens, and in which order
///
/// 1. `isExecuting` becomes true, with its change notifications.
/// 2. What was bound to other operations is handed over, conditions and resources are waited for, then `main()` is called: on the thread
///    that called `start()`, or on another one if that took time.
/// 3. `finish(withError:)` gives the operation its *outcome*, which never changes. From here on ``error`` can be read.
/// 4. ``asyncCompletionBlock`` is called once, with the error or `nil`, on the thread that ends the operation.
/// 5. `isExecuting` becomes false and `isFinished` true, in one step, with their change notifications. The operation is
///    *finished* now: dependents start.
/// 6. `completionBlock` is called by Foundation, on a thread of its choice. Awaiting tasks resume.
///
/// The steps 4 to 6 happen for every operation that is started, cancelled ones included. Nothing is called while the
/// operation's lock is held, so any of these blocks may use the operation freely.
///
/// An operation that consists of others, its *children*, is a *composite*: ``CompoundOperation``, ``MacroOperation``,
/// ``Waterfall`` and others. Every other operation is a *leaf*.
open class AsyncOperation: Operation, FailableOperation, @unchecked Sendable {
    /// A block that takes the outcome of an operation: `nil` for success.
    public typealias AsyncCompletionBlock = @Sendable (_ error: (any Error)?) -> Void

    /// Guards `state`, and what subclasses inside the library store. Never held while calling out.
    let lock = RecursiveLock()
    // The lock guarantees exclusive access; skip the run-time checks.
    @exclusivity(unchecked) private var state: State
    #if !canImport(ObjectiveC)
    @exclusivity(unchecked) private var storedCompletionBlock: (@Sendable () -> Void)?
    private var storedName: String?
    #endif

    // Does not change after the initialization.
    @exclusivity(unchecked) private var childGroup: (any ChildGroup)?

    /// Creates an operation that has not started.
    public override init() {
        unsafe state = State(lifecycle: Lifecycle(ending: .immediately))
        super.init()
    }

    /// What a composite consists of; `nil` for a leaf.
    final var children: (any ChildGroup)? { unsafe childGroup }

    /// Whether the operation consists of others.
    package final var isComposite: Bool { children != nil }

    /// The children that the operation is one of.
    final var parent: (any ChildGroup)? { withState { $0.parent } }
    /// The composite that the operation is a child of.
    package final var enclosingComposite: AsyncOperation? { parent?.operation }

    /// Makes the operation a composite, in its initializer. Attach the group to it next.
    ///
    /// It is a method because an internal designated initializer would keep users' subclasses from inheriting
    /// convenience initializers.
    final func becomeComposite(of children: any ChildGroup) {
        unsafe childGroup = children
        deferEnd()
    }

    /// Makes `finish(withError:)` a request, in the initializer: it gives the operation its outcome, not its end. A
    /// composite ends with `childrenFinished(_:own:)`, a leaf with `endDeferred(with:)`.
    final func deferEnd() {
        unsafe state.lifecycle = Lifecycle(ending: isComposite ? .afterChildren : .afterWork)
    }

    #if !canImport(ObjectiveC)
    deinit {
        let dependencies = unsafe state.hasHadDependencies ? super.dependencies : []
        if dependencies.isEmpty { return }
        let held = DependencyRelease(dependencies) { super.removeDependency($0) }
        // This block is never called, only freed.
        super.completionBlock = { _ = held }
    }
    #endif

    // MARK: - Subclassing

    /// Starts the work. The default implementation finishes the operation successfully.
    ///
    /// Called at most once, on the thread that calls `start()`, or on another one if a gate took time; not at all when
    /// the operation was cancelled or given an outcome before. Don't call this method yourself.
    open override func main() {
        finishInDefaultMain()
    }

    /// Stops the work of an operation that was cancelled while it was executing. The default implementation does nothing.
    ///
    /// Called at most once, and never at the same time as ``main()``. If `cancel()` is called while `main()` is running, this
    /// method is called right after `main()` has returned, on the same thread or the one that cancels, unless the operation has its outcome by
    /// then.
    /// Otherwise `cancel()` calls it, on the thread of its caller. It is not called for an operation that was cancelled before
    /// its `main()`. The work may call `finish` while this method runs; what the method does then has no effect on the outcome.
    /// Don't call this method yourself.
    open func didCancel() {}

    // MARK: - Foundation's interface

    /// Starts the operation. A queue does this; call it yourself only to run an operation without one.
    ///
    /// Runs ``main()`` on the calling thread, unless a condition or a resource takes time. An operation that was cancelled or given an
    /// outcome before finishes instead: immediately, or after its children. Every call but the first does nothing. As in Foundation,
    /// callers that start an operation themselves make sure that its dependencies have finished.
    public final override func start() {
        perform(withState { $0.lifecycle.started() })
    }

    /// Asks the operation to stop.
    ///
    /// May be called from any thread, any number of times; only the first call counts. An operation whose ``main()`` was not called
    /// never runs it, and finishes with `CancellationError`: immediately if it waits, otherwise once started. One that works has
    /// ``didCancel()`` called and finishes when its work does. Once an operation is finishing, cancelling has no effect, nor has it on
    /// a composite on which `finish(withError:)` was called and that waits for its children.
    public final override func cancel() {
        cancel(reason: nil)
    }

    /// A Boolean value that indicates whether the operation is executing: from its start, before ``main()``, until it is
    /// finished.
    public final override var isExecuting: Bool {
        withState { $0.lifecycle.isExecuting }
    }

    /// A Boolean value that indicates whether the operation is finished, and its ``asyncCompletionBlock`` has returned.
    public final override var isFinished: Bool {
        withState { $0.lifecycle.isFinished }
    }

    /// Always true: the end of ``main()`` is not the end of the operation.
    public final override var isAsynchronous: Bool {
        true
    }

    /// Makes the operation dependent on the completion of another one.
    ///
    /// Traps if that is the operation itself: on Linux, Foundation would hang. A composite can't depend on an operation
    /// that it contains, which waits for the composite to start: the dependency is not added, and the composite ends
    /// with ``CompoundOperationError/dependencyCycle(name:path:)`` when it is started.
    ///
    /// `bind` and `requireSuccess(of:)` call this method, so an override must not call them.
    ///
    /// On Linux, Foundation goes on counting a dependency that had not finished when `removeDependency(_:)` removed it, so a queue never
    /// starts the operation. A ``CompoundOperation`` starts it nevertheless, whatever an `isReady` of its class says, but waits for a
    /// dependency that is removed only when the compound has started.
    open override func addDependency(_ operation: Operation) {
        precondition(operation !== self, "OperationKit: “\(displayName)” cannot depend on itself")
        withState { $0.hasHadDependencies = true }
        addDependency(on: operation) { super.addDependency(operation) }
    }

    // MARK: - Outcome

    /// Ends the operation. The first call decides the outcome.
    ///
    /// May be called from any thread and any number of times: inside `main()`, from a callback, after a cancellation.
    /// The call that decides calls ``asyncCompletionBlock`` on its own thread, and the operation is finished when it
    /// returns. If a thread is just starting or cancelling the operation, this one included, that is left to it.
    ///
    /// Before the start the outcome is remembered, and the operation does not finish yet: a queue that it is on would
    /// crash. Once started, the operation finishes immediately and `main()` is not called.
    ///
    /// On a composite, such as ``CompoundOperation``, it is a request: the children are cancelled, and the composite
    /// ends after them, with this outcome. On a ``ThrowingBlockOperation``, it ends when its block has returned.
    ///
    /// - Parameter error: The error the operation ends with, or `nil` for success. `CancellationError`, and any other error
    ///   whose `isCancellation` is true, is replaced by the reason, if the operation was cancelled with one
    ///   (``cancel(withError:)``).
    /// - Returns: Whether this call decided the outcome. `false` means that an earlier one did.
    @discardableResult
    public func finish(withError error: (any Error)? = nil) -> Bool {
        finish(with: validated(error.map(Result.failure) ?? .success(())))
    }

    /// The error with which the operation ended. `nil` on success, and until the outcome is delivered: also if `finish` was called
    /// before the start.
    ///
    /// Can be read from any thread, from ``asyncCompletionBlock`` on. For an operation that was cancelled before its
    /// start it is `CancellationError`, or the reason of ``cancel(withError:)``, which a compound has inside its own error.
    public final var error: (any Error)? {
        withState { $0.lifecycle.outcome?.error }
    }

    /// Called once with the outcome, before the operation becomes finished.
    ///
    /// `nil` stands for success. The block is called for every operation that is started, cancelled ones included, on the
    /// thread that ends the operation; dependents and `completionBlock` come after it, and ``error`` can be read in it. It is
    /// released after the call. A block that is set once the outcome is being delivered is dropped.
    public final var asyncCompletionBlock: AsyncCompletionBlock? {
        get { withState { $0.completion } }
        set {
            // Release the old block after unlocking; its deinitializers may run arbitrary code.
            var previous = newValue
            withState {
                if $0.lifecycle.outcome == nil { swap(&previous, &$0.completion) }
            }
        }
    }

    #if !canImport(ObjectiveC)
    /// The name of the operation, for messages, errors and descriptions.
    ///
    /// May be set and read on any thread, at any time. On Linux, set the name of any other of Foundation's operations
    /// before it is added to a queue or to a composite.
    open override var name: String? {
        get { lock.withLock { storedName } }
        set { lock.withLock { storedName = newValue } }
    }

    /// Called by Foundation on a thread of its choice, once the operation is finished, and released then.
    ///
    /// Foundation documents that "this property is set to nil after the completion block begins executing"; on Linux it
    /// keeps the block, and with it whatever the block captures, the operation itself for one. So it is given one that calls
    /// this and forgets it. A block that is set on a finished operation is dropped. Of two blocks, one of which replaces the
    /// other while the operation ends, exactly one is called.
    open override var completionBlock: (@Sendable () -> Void)? {
        get { lock.withLock { unsafe storedCompletionBlock } }
        set {
            // Release the old block after unlocking; its deinitializers may run arbitrary code.
            var previous = newValue
            withState { if !$0.lifecycle.isFinished { unsafe swap(&previous, &storedCompletionBlock) } }
        }
    }

    /// Gives Foundation the block, in the step in which the operation becomes finished: a queue that finds it finished when its
    /// `start()` has returned announces the end by itself, at any moment from then on. Foundation only stores the block.
    final func handOverCompletionBlock() {
        guard let block = unsafe storedCompletionBlock.take() else { return }
        let relay = Locked<(@Sendable () -> Void)?>(block)
        super.completionBlock = { relay.withLock { $0.take() }?() }
    }
    #endif

    /// The state of the operation in one line, for `po`, logs and bug reports: its name, since when it executes, or what
    /// it waits for.
    ///
    /// For a composite, there is a line for each child that has not finished, at any depth:
    ///
    /// ```text
    /// “Sync”: executing for 31 s, 3 of 7 children have ended
    ///   “login”: executing for 31 s
    ///   “upload”: waiting for “login”, which is executing for 31 s
    ///   “notify”: waiting for “upload”, which waits for “login”, which is executing for 31 s
    ///   “pages”: executing for 12 s, 1 of 2 children have ended, suspended
    ///     “page 2”: ready, but the children are suspended
    /// ```
    ///
    /// An operation that has not started says why, where that can be known: what it depends on, or that its queue is
    /// suspended or at its limit. Foundation does not say which queue an operation is on. Looked at are the main queue, the
    /// current one, and, where ``OperationDiagnostics`` records starts, those on which an `AsyncOperation` has started or
    /// which were given one to run. To ask a certain queue, use ``OperationDiagnostics/description(of:)``.
    ///
    /// Those that have started come first. A composite with more than 100 says how many others there are, and there are
    /// at most 500 lines in all. Ages appear only where ``OperationDiagnostics`` records them, which debug builds do,
    /// and only for `AsyncOperation`s.
    ///
    /// May be read on any thread, at any time. Each line is true for the moment at which it was written. It isn't meant for
    /// programs: the wording may change. Operations are asked for their names, their state and their dependencies; where
    /// these are overridden, the overrides are called. Nothing is kept alive.
    open override var debugDescription: String {
        OperationTree(self, at: .now).text
    }

    // MARK: For subclasses inside the library

    /// What operations of this class are called in messages: the name of the class, if users know that.
    package class var typeTitle: String { typeName(of: self) }

    /// What this operation is called in messages if it has no name, unless that is the title of its class.
    var ownTitle: String? { nil }

    /// Why the work can't begin, as far as that can be told before it would. So it uses nothing of what it requires.
    var startProblem: (any Error)? { children?.problem(of: self) }

    /// Calls ``main()``. Classes that seal it start their work here instead, where callers cannot reach it.
    func startWork() {
        main()
    }

    /// Called once when a cancellation takes effect, inside `cancel()`. It comes before ``didCancel()`` and, unlike
    /// that, is called before the start and while the work is being started, too.
    func cancellationTookEffect() {}

    /// What the work waits for, while it only lets time pass.
    var waitDescription: String? { nil }

    /// Whether the operation makes attempts, gives what it requires to each of them, and holds nothing between two.
    var passesRequestToChildren: Bool { false }

    /// Drops the closures that hold the work. Called once, before the operation becomes finished.
    func releaseWork() {}

    /// Returns the outcome that stands for the one that `finish(withError:)` was given: for success without an output,
    /// a typed operation returns an error.
    func validated(_ outcome: Lifecycle.Outcome) -> Lifecycle.Outcome { outcome }

    /// Reads and changes the state, with the lock held. `body` calls nothing that might lock again, apart
    /// from resources, whose locks are always the last ones.
    final func withState<Value>(_ body: (inout State) throws -> Value) rethrows -> Value {
        try lock.withLock { try unsafe body(&state) }
    }
}
