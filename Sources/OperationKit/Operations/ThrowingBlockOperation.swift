public import Foundation

/// A synchronous operation whose block may throw: `BlockOperation` with an error.
///
/// The block runs once, on the thread that starts the operation, and the operation finishes when it returns or throws.
/// The thrown error is the operation's ``error``. For an operation that was cancelled before its start the block does
/// not run, and the error is `CancellationError`. The block is released when the operation finishes.
///
/// A cancellation does not disturb a block that has begun. One that works for long asks for a ``WorkHandle``:
///
/// ```swift
/// let search = ThrowingBlockOperation(name: "search") { work in
///     for page in 1...1_000 where page.isMultiple(of: 7) {
///         try work.checkCancellation()
///     }
/// }
/// ```
public final class ThrowingBlockOperation: Operation, FailableOperation, @unchecked Sendable {
    /// The work.
    public typealias Block = @Sendable () throws -> Void

    private enum Work {
        case plain(Block)
        case observing(@Sendable (WorkHandle) throws -> Void)
    }

    private struct State {
        var work: Work?
        var cancellationHandlers = CancellationHandlers()
        var failure: (any Error)?
        var membership = Membership()
        #if !canImport(ObjectiveC)
        var completionRelay: CompletionBlockRelay?
        var hasStarted = false
        var hasEnded = false
        var name: String?
        #endif
    }

    private let state: Locked<State>

    /// Creates an operation that runs a block.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping Block) {
        state = Locked(State(work: .plain(block)))
        super.init()
        self.name = name
    }

    /// Creates an operation that runs a block, which can see that the operation is cancelled.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping @Sendable (_ work: WorkHandle) throws -> Void) {
        state = Locked(State(work: .observing(block)))
        super.init()
        self.name = name
    }

    #if !canImport(ObjectiveC)
    deinit {
        let held = DependencyRelease.hold(super.dependencies) { super.removeDependency($0) }
        // This block is never called, only freed.
        if let held { super.completionBlock = { _ = held } }
    }
    #endif

    /// What the block threw, or `CancellationError` if it did not run; `nil` on success and before the end.
    public var error: (any Error)? {
        // A cancellation may come just before Foundation checks for one. Then the operation is finished before `run()`
        // has stored an outcome, but its block is still there.
        let isFinished = isFinished
        return state.withLock { $0.failure ?? (isFinished && $0.work != nil ? CancellationError() : nil) }
    }

    /// Runs the block, or finishes with `CancellationError` if the operation was cancelled.
    public override func start() {
        #if canImport(ObjectiveC)
        run()
        #else
        // At the end, Foundation reads `super.completionBlock` without a lock, so it is not written after the start. A
        // block that is set for the first time later is called from here.
        let (isFirst, relay) = state.withLock { state in
            (!exchange(&state.hasStarted, with: true), state.completionRelay)
        }
        if isFirst, let relay { super.completionBlock = { relay.fire() } }
        run()
        guard isFirst, relay == nil else { return }
        let late = state.withLock { state in
            state.hasEnded = true
            return state.completionRelay
        }
        late?.fireSoon(for: self)
        #endif
    }

    private func run() {
        if isCancelled { settle(.failure(CancellationError())) }
        super.start()
        // A cancellation may have come in between: then the block did not run.
        if isFinished { settle(.failure(CancellationError())) }
        if error is CancellationError { detachFromDependencies() }
    }

    /// Runs the block.
    public override func main() {
        switch state.withLock({ $0.work }) {
        case .plain(let block): settle(Result { try block() })
        case .observing(let block): settle(Result { try block(WorkHandle(operation: self)) })
        case nil: return
        }
    }

    /// Cancels the operation. A block that has begun goes on, and is told by its ``WorkHandle``, if it has one.
    public override func cancel() {
        super.cancel()
        callCancellationHandlers()
        state.withLock { $0.membership.parent }?.childWasCancelled(self)
    }

    /// Stores the first outcome, and releases the block.
    private func settle(_ outcome: Lifecycle.Outcome) {
        // The thread that cancels may not have come to the handlers yet.
        if isCancelled { callCancellationHandlers() }
        // Release the block and the handlers after unlocking; their deinitializers may run arbitrary code.
        let discarded = state.withLock { state in
            let work = state.work.take()
            if work != nil { state.failure = outcome.error }
            return (work, state.cancellationHandlers.ended())
        }
        withExtendedLifetime(discarded) {}
    }

    #if !canImport(ObjectiveC)
    /// The name of the operation. May be set and read on any thread, at any time.
    public override var name: String? {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    /// Called by Foundation on a thread of its choice, once the operation is finished, and released then. Of two blocks,
    /// one of which replaces the other while the operation ends, exactly one is called.
    public override var completionBlock: (@Sendable () -> Void)? {
        get { state.withLock { $0.completionRelay }?.block }
        set {
            if isFinished { return }
            let relay = state.withLock { state in
                if state.completionRelay == nil, newValue != nil, !state.hasEnded {
                    state.completionRelay = CompletionBlockRelay()
                }
                return state.completionRelay
            }
            relay?.block = newValue
        }
    }
    #endif
}

extension ThrowingBlockOperation: CancellableWork {
    func changeCancellationHandlers<Value>(_ body: (inout CancellationHandlers) -> Value) -> Value {
        state.withLock { body(&$0.cancellationHandlers) }
    }
}

extension ThrowingBlockOperation {
    /// Reads and changes what the operation is part of, with the lock held.
    func changeMembership<Value>(_ body: (inout Membership) -> Value) -> Value {
        state.withLock { body(&$0.membership) }
    }
}
