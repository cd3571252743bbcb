import Foundation

/// Holds a completion block until it is called, so that no operation is kept alive by its own block afterward.
///
/// Foundation is given a closure that fires the relay. It keeps that closure on Linux, but the relay is empty by then.
final class CompletionBlockRelay: Sendable {
    private struct State {
        var block: (@Sendable () -> Void)?
        var hasFired = false
    }

    private let state = Locked(State())

    /// The block. One that is set when the relay has fired comes too late, and is dropped.
    var block: (@Sendable () -> Void)? {
        get { state.withLock { $0.block } }
        set {
            // Release the old block after unlocking; its deinitializers may run arbitrary code.
            let previous = state.withLock { state in
                state.hasFired ? newValue : exchange(&state.block, with: newValue)
            }
            withExtendedLifetime(previous) {}
        }
    }

    /// Calls the block, if there is one.
    func fire() {
        let block = state.withLock { state in
            state.hasFired = true
            return state.block.take()
        }
        block?()
    }
}
