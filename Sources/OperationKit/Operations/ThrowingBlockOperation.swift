public import Foundation

/// A synchronous operation whose block may throw: `BlockOperation` with an error.
///
/// The block runs once, on the thread that starts the operation, and the operation finishes when it returns or throws.
/// The thrown error is the operation's ``error``. For an operation that was cancelled before its start the block does
/// not run, and the error is `CancellationError`. The block is released when the operation finishes.
public final class ThrowingBlockOperation: Operation, FailableOperation, @unchecked Sendable {
    /// The work.
    public typealias Block = @Sendable () throws -> Void

    private struct State {
        var block: Block?
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
        state = Locked(State(block: block))
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
        // A cancellation may come when Foundation is about to look for one. Then the operation is finished before that
        // is known here, but its block is still there.
        let isFinished = isFinished
        return state.withLock { $0.failure ?? (isFinished && $0.block != nil ? CancellationError() : nil) }
    }

    /// Runs the block, or finishes with `CancellationError` if the operation was cancelled.
    public override func start() {
        #if canImport(ObjectiveC)
        run()
        #else
        // Foundation reads its own slot for the block without a lock at the end, so nothing is written there after the
        // start. A first block that comes later is called from here.
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
        guard let block = state.withLock({ $0.block }) else { return }
        settle(Result { try block() })
    }

    /// Cancels the operation. A block that has begun is not disturbed.
    public override func cancel() {
        super.cancel()
        state.withLock { $0.membership.parent }?.childWasCancelled(self)
    }

    /// Stores the first outcome, and lets go of the block.
    private func settle(_ outcome: Lifecycle.Outcome) {
        let discarded = state.withLock { state in
            let block = state.block.take()
            if block != nil { state.failure = outcome.error }
            return block
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

extension ThrowingBlockOperation {
    /// Reads and changes where the operation belongs, with the lock held.
    func changeMembership<Value>(_ body: (inout Membership) -> Value) -> Value {
        state.withLock { body(&$0.membership) }
    }
}
