#if DEBUG || TESTABLE
package import Testing

@testable package import OperationKit

extension AsyncOperation {
    /// Whether nothing keeps `main()` from being called any more, so that what cancels the operation leaves its end to its work.
    /// An operation that is only executing may end without it.
    package var isAtWork: Bool { withState { $0.lifecycle.reachedMain && $0.lifecycle.isExecuting } }

    /// Whether a task waits for the end of the operation.
    package var isAwaited: Bool {
        withState { state in
            var observers = state.observers
            return observers.removeAll().contains { $0 is TaskWaiter }
        }
    }

    /// Suspends until a task waits for the end of the operation, in `finished()` for example.
    package func becomesAwaited(_ location: SourceLocation = #_sourceLocation) async {
        await eventually("no task waits for \(name ?? "the operation")", location) { isAwaited }
    }
}

extension CompoundOperation {
    /// Starts the compound, and suspends until children are at work.
    package func start(
        until child: AsyncOperation, _ others: AsyncOperation..., location: SourceLocation = #_sourceLocation
    ) async {
        OperationQueue().addOperation(self)
        await eventually("not begun", location) { child.isAtWork && others.allSatisfy(\.isAtWork) }
    }
}

/// Expects that a task which begins to wait for an operation goes on only when what holds up the end is back.
///
/// - Parameters:
///   - operation: An operation that is executing.
///   - began: Opened by what holds up the end, after the operation has become finished.
///   - goOn: What it waits for.
/// - Throws: What the operation ends with.
package func expectWait(for operation: AsyncOperation, heldUpSince began: Gate, until goOn: Gate) async throws {
    let ending = Task { await onThread { _ = operation.finish() } }
    #expect(await onThread { began.pass() })
    #expect(operation.isFinished)
    let hasReturned = Shared(false)
    let waiting = Task {
        try await operation.finished()
        hasReturned.value = true
    }
    await eventually("the task does not wait") { operation.isAwaited || hasReturned.value }
    #expect(!hasReturned.value)
    goOn.open()
    await ending.value
    try await waiting.value
}
#endif
