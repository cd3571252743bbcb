import Dispatch
import Foundation

/// Holds a completion block until it is called, so that no operation is kept alive by its own block afterwards.
///
/// Foundation is given a closure that fires the relay. It keeps that closure on Linux, but the relay is empty by then.
final class CompletionBlockRelay: @unchecked Sendable {
    private let lock = NSLock()
    private var storage: (@Sendable () -> Void)?

    var block: (@Sendable () -> Void)? {
        get { lock.withLock { storage } }
        set {
            var previous = newValue
            lock.withLock { swap(&previous, &storage) }
        }
    }

    /// Calls the block, if there is one that has not been called.
    func fire() {
        var block: (@Sendable () -> Void)?
        lock.withLock { swap(&block, &storage) }
        block?()
    }

    /// For a block that was set while the operation was finishing, and that Foundation may have missed.
    func fireSoon() {
        DispatchQueue.global().async { self.fire() }
    }
}
