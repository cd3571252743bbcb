import OperationKitTestSupport

/// `main()` is public, because Foundation's is. A class that seals it does its work elsewhere, where callers cannot reach it.
@Suite("Classes that seal main()", .hangGuard) struct SealedMainTests {
    private typealias Made = (operation: AsyncOperation, callMain: @Sendable () -> Void)

    private static func plain(_ operation: AsyncOperation) -> Made { (operation, { operation.main() }) }

    private static func typed<Input, Output>(_ operation: IOOperation<Input, Output>, _ input: Input) -> Made {
        operation.input = input
        return (operation, { operation.main(input: input) })
    }

    /// Operations that work once, and a call of their `main()`.
    private static let makers: [@Sendable (@escaping @Sendable () -> Void) -> Made] = [
        { work in
            plain(
                AsyncBlockOperation {
                    work(); $0()
                })
        }, { work in plain(ThrowingBlockOperation { work() }) },
        { work in
            let delay = DelayOperation(for: .zero)
            delay.asyncCompletionBlock = { _ in work() }
            return plain(delay)
        },
        { work in typed(TaskOperation { work() }, ()) },
        { work in typed(IOTaskOperation<Int, Void> { _ in work() }, 1) },
        { work in typed(IOBlockOperation<Int, Void> { _ in work() }, 1) },
        { work in typed(MapOperation<Int, Void> { _ in work() }, [1]) },
        { work in typed([TaskOperation { work() }].gathered(), ()) },
        { work in typed(Items(work).makeOperation(on: [1]), [1]) },
    ]

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

    @Test("Calling `main()` of a leaf by hand does nothing, before and after its life", arguments: makers.indices)
    func byHand(_ index: Int) async throws {
        let count = Shared(0)
        let (operation, callMain) = Self.makers[index]({ count.change { $0 += 1 } })
        callMain()
        #expect(count.value == 0 && !operation.isFinished, "\(type(of: operation))")
        try await OperationQueue().run(operation)
        callMain()
        #expect(count.value == 1 && operation.error == nil, "\(type(of: operation))")
    }
}
