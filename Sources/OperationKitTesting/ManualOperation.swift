import Foundation
public import OperationKit

/// An operation that ends when a test says so, and records what was asked of it.
///
/// ```swift
/// let load = ManualOperation<Void, String>(name: "load")
/// let queue = OperationQueue()
/// queue.addOperation(load)
/// await load.started()
/// load.finish(with: "page")
/// assert(load.calls == [.main])
/// ```
///
/// Write `ManualOperation<Void, Void>` for work without input and output. End it with `finish(with:)` or
/// `finish(withError:)`. If it is cancelled while it works, it ends with `CancellationError`, unless ``ignoresCancellation`` is
/// set.
public final class ManualOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    /// What the library has called.
    public enum Call: Sendable, Hashable {
        case main, didCancel
    }

    /// Whether the work goes on when the operation is cancelled.
    public let ignoresCancellation: Bool

    private let lock = NSLock()
    private var recorded: [Call] = []
    private let gate = Gate()

    /// Creates an operation.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - ignoresCancellation: Whether the work goes on when the operation is cancelled.
    public init(name: String? = nil, ignoresCancellation: Bool = false) {
        self.ignoresCancellation = ignoresCancellation
        super.init()
        self.name = name
    }

    /// What the library has called, in order.
    public var calls: [Call] { lock.withLock { recorded } }

    /// Whether the work has begun.
    public var hasStarted: Bool { gate.isOpen }

    /// Suspends until the work has begun, or the waiting task is cancelled. An operation that never works never begins.
    public func started() async { await gate.opened() }

    /// Begins the work. Don't call this method yourself.
    public override func main(input: Input) {
        lock.withLock { recorded.append(.main) }
        gate.open()
    }

    /// Stops the work. Don't call this method yourself.
    public override func didCancel() {
        lock.withLock { recorded.append(.didCancel) }
        if !ignoresCancellation { finish(withError: CancellationError()) }
    }
}
