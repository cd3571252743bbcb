import OperationKitTestSupport
import Testing

@testable import OperationKit

extension AsyncOperation {
    /// Suspends until a task waits for the end of the operation, in `finished()` for example.
    func becomesAwaited(_ location: SourceLocation = #_sourceLocation) async {
        await eventually("no task waits for \(name ?? "the operation")", location) {
            withState { !$0.waiters.isEmpty }
        }
    }
}
