import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// `main()` is public, because Foundation's is. A class that seals it does its work elsewhere, where callers cannot reach it.
@Suite("Classes that seal main()", .hangGuard) struct SealedMainTests {
    enum Kind: CaseIterable, Sendable {
        case asyncBlock, throwingBlock, delay, task, typedTask, typedBlock, map, gathering, collection
    }

    final class Items: SequentialItemOperation, Sendable {
        let work: @Sendable () -> Void

        init(_ work: @escaping @Sendable () -> Void) {
            self.work = work
        }

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            work()
            completion(nil)
        }
    }

    /// Returns an operation that works once, and a call of its `main()`.
    private func make(_ kind: Kind, _ work: @escaping @Sendable () -> Void) -> (AsyncOperation, @Sendable () -> Void) {
        switch kind {
        case .asyncBlock:
            let operation = AsyncBlockOperation { finish in
                work()
                finish()
            }
            return (operation, { operation.main() })
        case .throwingBlock:
            let operation = ThrowingBlockOperation { work() }
            return (operation, { operation.main() })
        case .delay:
            let operation = DelayOperation(for: .zero)
            operation.asyncCompletionBlock = { _ in work() }
            return (operation, { operation.main() })
        case .task:
            let operation = TaskOperation { work() }
            return (operation, { operation.main(input: ()) })
        case .typedTask:
            let operation = IOTaskOperation<Int, Void> { _ in work() }
            operation.input = 1
            return (operation, { operation.main(input: 1) })
        case .typedBlock:
            let operation = IOBlockOperation<Int, Void> { _ in work() }
            operation.input = 1
            return (operation, { operation.main(input: 1) })
        case .map:
            let operation = MapOperation<Int, Void> { _ in work() }
            operation.input = [1]
            return (operation, { operation.main(input: [1]) })
        case .gathering:
            let operation = [TaskOperation { work() }].gathered()
            return (operation, { operation.main(input: ()) })
        case .collection:
            let operation = Items(work).makeOperation(on: [1])
            return (operation, { operation.main(input: [1]) })
        }
    }

    @Test("Calling `main()` of a leaf by hand does nothing, before and after its life", arguments: Kind.allCases)
    func byHand(_ kind: Kind) async throws {
        let count = Shared(0)
        let (operation, callMain) = make(kind) { count.change { $0 += 1 } }
        callMain()
        #expect(count.value == 0)
        #expect(!operation.isFinished)
        try await OperationQueue().run(operation)
        callMain()
        #expect(count.value == 1)
        #expect(operation.error == nil)
    }
}
