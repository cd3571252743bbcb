package import Foundation
import OperationKit

/// An asynchronous operation as other libraries write it: flags behind a lock, change notifications, its own `start()`. Some
/// finish in their own `cancel()`, whether they have started or not.
package final class ForeignOperation: Operation, @unchecked Sendable {
    package typealias Work = @Sendable (ForeignOperation) -> Void

    private let state: Shared<(executing: Bool, finished: Bool, mayStart: Bool)>
    private let endsInCancel: Bool
    private let willFinish: @Sendable () -> Void
    private let didCancel: @Sendable () -> Void
    private let work: Work

    /// Creates an operation whose work ends with `finish()`, on any thread, and that may be ready only after `becomeReady()`.
    /// Each call of `finish()` calls `willFinish` first, and each call of `cancel()` calls `didCancel` last.
    package init(
        _ name: String? = nil, isReady: Bool = true, endsInCancel: Bool = false,
        willFinish: @escaping @Sendable () -> Void = {}, didCancel: @escaping @Sendable () -> Void = {},
        _ work: @escaping Work
    ) {
        state = Shared((false, false, isReady))
        self.endsInCancel = endsInCancel
        self.willFinish = willFinish
        self.didCancel = didCancel
        self.work = work
        super.init()
        self.name = name
    }

    package override var isReady: Bool { super.isReady && state.value.mayStart }

    package func becomeReady(announces: Bool = true) {
        willChangeValue(forKey: "isReady")
        state.change { $0.mayStart = true }
        if announces { didChangeValue(forKey: "isReady") }
    }

    package override var isAsynchronous: Bool { true }
    package override var isExecuting: Bool { state.value.executing }
    package override var isFinished: Bool { state.value.finished }

    package override func start() {
        if isCancelled, !endsInCancel { return finish() }
        willChangeValue(forKey: "isExecuting")
        let begins = state.change { state in
            state.executing = !state.finished
            return state.executing
        }
        didChangeValue(forKey: "isExecuting")
        if begins { work(self) }
    }

    package override func cancel() {
        super.cancel()
        if endsInCancel { finish() }
        didCancel()
    }

    /// The first call finishes the operation.
    package func finish() {
        willFinish()
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        let isFirst = state.change { state in
            defer { (state.executing, state.finished) = (false, true) }
            return !state.finished
        }
        didChangeValue(forKey: "isExecuting")
        if isFirst { didChangeValue(forKey: "isFinished") }
    }
}

/// A synchronous operation that is ready when it is told to be.
package final class GatedReadyOperation: Operation, @unchecked Sendable {
    private let mayRun = Shared(false)
    private let work: @Sendable () -> Void

    package init(_ name: String? = nil, _ work: @escaping @Sendable () -> Void) {
        self.work = work
        super.init()
        self.name = name
    }

    package override var isReady: Bool { super.isReady && (isCancelled || mayRun.value) }

    package func becomeReady() {
        willChangeValue(forKey: "isReady")
        mayRun.value = true
        didChangeValue(forKey: "isReady")
    }

    package override func main() { work() }
}

/// The kinds of children that a compound has to cope with.
package enum ChildKind: CaseIterable, Sendable {
    case block, throwing, asynchronous, hopping, foreign, compound

    /// An operation that runs `work` and then finishes.
    package func make(_ name: String? = nil, _ work: @escaping @Sendable () -> Void) -> Operation {
        let hop = { @Sendable (finish: @escaping @Sendable () -> Void) in
            elsewhere {
                work()
                finish()
            }
        }
        let operation: Operation =
            switch self {
            case .block: BlockOperation(block: work)
            case .throwing: ThrowingBlockOperation { work() }
            case .asynchronous:
                ScriptedOperation {
                    work()
                    $0.finish()
                }
            case .hopping: ScriptedOperation { operation in hop { operation.finish() } }
            case .foreign: ForeignOperation { operation in hop { operation.finish() } }
            case .compound: CompoundOperation(operations: [BlockOperation(block: work)])
            }
        operation.name = name
        return operation
    }
}
