import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// In every closure that is `async`, `Task.isCancelled` is the operation's.
@Suite("Cancellation seen by tasks", .hangGuard) struct TaskCancellationTests {
    enum Kind: CaseIterable {
        case task, block, map, asyncItem, asyncBatch

        func make(_ body: @escaping @Sendable () async -> Void) -> AsyncOperation {
            switch self {
            case .task:
                return TaskOperation(body)
            case .block:
                return IOTaskOperation<Void, Void> { await body() }
            case .map:
                let operation = MapOperation<Int, Void> { _ in await body() }
                operation.input = [1]
                return operation
            case .asyncItem:
                return Items(body).makeOperation(on: [1])
            case .asyncBatch:
                return Batches(body).makeOperation(on: [1])
            }
        }
    }

    private final class Items: ParallelItemOperation, AsyncItemOperation {
        let body: @Sendable () async -> Void
        init(_ body: @escaping @Sendable () async -> Void) { self.body = body }
        func performOperation(onItem item: Int) async throws { await body() }
    }

    private final class Batches: SequentialBatchOperation, AsyncBatchOperation {
        let batchSize = 2
        let body: @Sendable () async -> Void
        init(_ body: @escaping @Sendable () async -> Void) { self.body = body }
        func performOperation(onBatch batch: [Int]) async throws { await body() }
    }

    @Test("When cancel() has returned, the task is cancelled", arguments: Kind.allCases)
    func cancelledWhileRunning(kind: Kind) async {
        let (begun, cancelled) = (Gate(), Gate())
        let seen = Shared<[Bool]>([])
        let operation = kind.make {
            seen.change { $0.append(Task.isCancelled) }
            begun.open()
            await cancelled.openedDespiteCancellation()
            seen.change { $0.append(Task.isCancelled) }
        }
        operation.start()
        await begun.opened()
        operation.cancel()
        cancelled.open()
        _ = try? await operation.finished()
        #expect(seen.value == [false, true])
    }

    @Test("Cancelled between its start and its work, the closure is not called", arguments: [Kind.task, .block])
    func cancelledBeforeTheWork(kind: Kind) async {
        let isCalled = Shared(false)
        let operation = kind.make { isCalled.value = true }
        operation.addStartHandler { $0.cancel() }
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(!isCalled.value)
    }

    @Test(
        "Cancelled while it starts, the closure finds its task cancelled when cancel() has returned",
        arguments: [Kind.task, .block])
    func cancelledWhileStarting(kind: Kind) async {
        struct Subject: Sendable {
            let operation: AsyncOperation
            let hasReturned: Shared<Bool>
        }
        let wrong = EventLog()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: TestExtent.choose(1_000, long: 20_000), seed: seed,
            prepare: { _ in
                let hasReturned = Shared(false)
                let operation = kind.make {
                    for _ in 0..<20 where hasReturned.value {
                        if !Task.isCancelled { wrong.add("the task is not cancelled") }
                    }
                }
                return Subject(operation: operation, hasReturned: hasReturned)
            },
            [
                { @Sendable in $0.operation.start() },
                { @Sendable subject in
                    subject.operation.cancel()
                    subject.hasReturned.value = true
                },
            ],
            check: { _, _ in })
        #expect(wrong.events.isEmpty, "seed \(seed)")
    }
}
