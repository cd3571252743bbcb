import Foundation
import OperationKit
import OperationKitTesting

/// A plain `Operation` that has only a `main()`: Foundation sees to the rest.
final class OnlyMain: Operation, @unchecked Sendable {
    override func main() { Thread.sleep(forTimeInterval: 0.001) }
}

/// Executes before it looks at `isCancelled`, and looks on another thread.
final class LookingWhileExecuting: ForeignOperation, @unchecked Sendable {
    override func start() {
        announcing("isExecuting") { lock.withLock { state = .executing } }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) {
            if self.isCancelled { self.finish() } else { self.work() }
        }
    }

    override func work() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.02) { self.finish() } }
}

/// A plain `Operation` that becomes ready a little later, as the classes do that wait for a permission.
final class PermittedLater: Operation, @unchecked Sendable {
    private let lock = NSLock()
    private var isPermitted = false

    override init() {
        super.init()
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) {
            self.willChangeValue(forKey: "isReady")
            self.lock.withLock { self.isPermitted = true }
            self.didChangeValue(forKey: "isReady")
        }
    }

    override var isReady: Bool { super.isReady && lock.withLock { isPermitted } }
}

/// What keeps the rules: the operations of the library, and others.
enum CorrectOperations {
    static let makers: [@Sendable () -> Operation] = [
        { ForeignOperation() }, { BlockOperation {} }, { AsyncOperation() }, { Echo().with(input: 1) },
        { AsyncBlockOperation { finish in DispatchQueue.global().async { finish() } } },
        { ThrowingBlockOperation {} }, { IOBlockOperation<Int, Int> { $0 }.with(input: 1) },
        { TaskOperation { try await Task.sleep(for: .milliseconds(2)) } },
        { TaskOperation { try await Task.sleep(for: .milliseconds(250)) } },
        { IOTaskOperation<Int, Int> { $0 }.with(input: 1) },
        { CompoundOperation(operations: [AsyncOperation(), BlockOperation {}, TaskOperation { 1 }]) },
        { Preparing { Echo().with(input: 1) } }, { Preparing { ForeignOperation() } }, { OnlyMain() },
        { EndingAtOnce() }, { LookingWhileExecuting() },
        { PermittedLater() }, { ReadyLater(announcesIt: true) },
        { MacroOperation(IOBlockOperation<Int, Int> { $0 }).then(IOBlockOperation { $0 + 1 }).with(input: 1) },
        { Waterfall<Int, Int>().then { $0 + 1 }.thenAwait { $0 }.with(input: 1) },
        { WorkflowOperation<Void, Int> { flow in try await flow.run(TaskOperation { 1 }) } },
        { RetryOperation(RetryPolicy(backoff: .none)) { _ in TaskOperation { 1 } } },
        { RepeatOperation(every: .milliseconds(1), maximumCount: 2) { _ in TaskOperation { 1 } } },
        { HedgedOperation(after: .milliseconds(1)) { _ in TaskOperation { 1 } } },
        { [TaskOperation { 1 }, TaskOperation { 2 }].gathered() },
        { MapOperation<Int, Int> { $0 }.with(input: [1, 2]) },
        { TaskOperation { 1 }.map { $0 + 1 }.recover { _ in 2 } }, { DelayOperation(for: .milliseconds(2)) },
    ]
}
