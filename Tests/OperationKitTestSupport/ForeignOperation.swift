import Dispatch
package import Foundation
import OperationKit

/// An asynchronous operation as other libraries write it: flags behind a lock, change notifications, its own `start()`.
package final class ForeignOperation: Operation, @unchecked Sendable {
    package typealias Work = @Sendable (ForeignOperation) -> Void

    private let lock = NSLock()
    private var executing = false
    private var finished = false
    private let work: Work

    /// Creates an operation whose work ends with `finish()`, on any thread.
    package init(_ name: String? = nil, _ work: @escaping Work) {
        self.work = work
        super.init()
        self.name = name
    }

    package override var isAsynchronous: Bool { true }
    package override var isExecuting: Bool { lock.withLock { executing } }
    package override var isFinished: Bool { lock.withLock { finished } }

    package override func start() {
        if isCancelled { return finish() }
        willChangeValue(forKey: "isExecuting")
        lock.withLock { executing = true }
        didChangeValue(forKey: "isExecuting")
        work(self)
    }

    package func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        lock.withLock {
            executing = false
            finished = true
        }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}

/// A synchronous operation that is ready when it is told to be.
package final class GatedReadyOperation: Operation, @unchecked Sendable {
    private let lock = NSLock()
    private var mayRun = false
    private let work: @Sendable () -> Void

    package init(_ name: String? = nil, _ work: @escaping @Sendable () -> Void) {
        self.work = work
        super.init()
        self.name = name
    }

    package override var isReady: Bool { super.isReady && (isCancelled || lock.withLock { mayRun }) }

    package func becomeReady() {
        willChangeValue(forKey: "isReady")
        lock.withLock { mayRun = true }
        didChangeValue(forKey: "isReady")
    }

    package override func main() { work() }
}

/// The kinds of children that a compound has to cope with.
package enum ChildKind: CaseIterable, Sendable {
    case block, throwing, asynchronous, hopping, foreign, compound

    /// An operation that runs `work` and then finishes.
    package func make(_ name: String? = nil, _ work: @escaping @Sendable () -> Void) -> Operation {
        let operation: Operation
        switch self {
        case .block:
            operation = BlockOperation(block: work)
        case .throwing:
            operation = ThrowingBlockOperation { work() }
        case .asynchronous:
            operation = ScriptedOperation {
                work()
                $0.finish()
            }
        case .hopping:
            operation = ScriptedOperation { operation in
                DispatchQueue.global().async {
                    work()
                    operation.finish()
                }
            }
        case .foreign:
            operation = ForeignOperation { operation in
                DispatchQueue.global().async {
                    work()
                    operation.finish()
                }
            }
        case .compound:
            operation = CompoundOperation(operations: [BlockOperation(block: work)])
        }
        operation.name = name
        return operation
    }
}

/// An asynchronous operation as other libraries write it that finishes in its own `cancel()`, whether it has started or not.
package final class ForeignOperationEndingInCancel: Operation, @unchecked Sendable {
    private let lock = NSLock()
    private var executing = false
    private var finished = false
    private let work: @Sendable (ForeignOperationEndingInCancel) -> Void

    /// Creates an operation whose work ends with `finish()`, on any thread.
    package init(_ work: @escaping @Sendable (ForeignOperationEndingInCancel) -> Void = { $0.finish() }) {
        self.work = work
    }

    package override var isAsynchronous: Bool { true }
    package override var isExecuting: Bool { lock.withLock { executing } }
    package override var isFinished: Bool { lock.withLock { finished } }

    package override func start() {
        let begins = lock.withLock {
            executing = !finished
            return executing
        }
        guard begins else { return }
        didChangeValue(forKey: "isExecuting")
        work(self)
    }

    package override func cancel() {
        super.cancel()
        finish()
    }

    /// The first call finishes the operation.
    package func finish() {
        willChangeValue(forKey: "isFinished")
        let isFirst = lock.withLock {
            executing = false
            defer { finished = true }
            return !finished
        }
        if isFirst { didChangeValue(forKey: "isFinished") }
    }
}
