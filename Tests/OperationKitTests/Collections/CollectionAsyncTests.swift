import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Asynchronous functions: as the way to call, and as the way to implement.
@Suite("Collection operations with async", .serialized, .hangGuard) struct CollectionAsyncTests {
    private class AsyncNumbers: @unchecked Sendable {
        let maxConcurrentOperationCount = 3
        let batchSize = 1
        let work: @Sendable (Int) async throws -> Void

        init(_ work: @escaping @Sendable (Int) async throws -> Void) {
            self.work = work
        }

        func performOperation(onItem item: Int) async throws { try await work(item) }
        func performOperation(onBatch batch: [Int]) async throws { try await work(batch[0]) }
    }

    private final class A: AsyncNumbers, ParallelItemOperation, AsyncItemOperation, @unchecked Sendable {}
    private final class B: AsyncNumbers, ParallelBatchOperation, AsyncBatchOperation, @unchecked Sendable {}
    private final class C: AsyncNumbers, SequentialItemOperation, AsyncItemOperation, @unchecked Sendable {}
    private final class D: AsyncNumbers, SequentialBatchOperation, AsyncBatchOperation, @unchecked Sendable {}

    private static func make(
        _ strategy: Strategy, _ work: @escaping @Sendable (Int) async throws -> Void
    ) -> any CollectionOperation<Int> & Sendable {
        switch strategy {
        case .parallelItems: A(work)
        case .parallelBatches: B(work)
        case .sequentialItems: C(work)
        case .sequentialBatches: D(work)
        }
    }

    @Test("The `await` form returns the errors", arguments: Strategy.allCases)
    func errors(strategy: Strategy) async {
        let operation = strategy.make { items, completion in completion(items[0] == 2 ? TestError.second : nil) }
        #expect(await operation.performOperation(on: [1, 2, 3]).map(text) == ["success", "second", "success"])
        #expect(await operation.performOperation(on: []).isEmpty)
    }

    @Test("Async methods report what they throw", arguments: Strategy.allCases)
    func thrownErrors(strategy: Strategy) async {
        let operation = Self.make(strategy) { item in
            await Task.yield()
            if item == 2 { throw TestError.second }
        }
        #expect(await operation.performOperation(on: [1, 2, 3]).map(text) == ["success", "second", "success"])
        let (errors, calls) = await operation.run(on: [1, 2, 3])
        #expect(errors.map(text) == ["success", "second", "success"] && calls == 1)
    }

    @Test("An async item or batch can be performed with a completion, too")
    func completionOfAnAsyncItem() async throws {
        let operation = A { if $0 == 2 { throw TestError.second } }
        let error = await withCheckedContinuation { continuation in
            operation.performOperation(onItem: 2) { continuation.resume(returning: $0) }
        }
        #expect(text(error) == "second")
        let success = await withCheckedContinuation { continuation in
            operation.performOperation(onItem: 1) { continuation.resume(returning: $0) }
        }
        #expect(success == nil)
        #expect(try await operation.performOperation(onEach: [1, 2, 3]).map(\.index) == [1])
        let batch = await withCheckedContinuation { continuation in
            B { _ in }.performOperation(onBatch: [1]) { continuation.resume(returning: $0) }
        }
        #expect(batch == nil)
    }

    @Test("Async methods are cancelled with the run", arguments: Strategy.allCases)
    func cancelledRun(strategy: Strategy) async {
        let begun = Shared(0)
        let full = Gate()
        let never = Gate()
        let operation = Self.make(strategy) { _ in
            let count = begun.change {
                $0 += 1
                return $0
            }
            if count == strategy.width(3) { full.open() }
            await never.opened()
            throw Task.isCancelled ? TestError.first : TestError.second
        }
        let task = Task { await operation.performOperation(on: Array(0..<10)) }
        await full.opened()
        task.cancel()
        let width = strategy.width(3)
        #expect(await task.value.map(text) == (0..<10).map { $0 < width ? "first" : "cancelled" })
        #expect(begun.value == width)
    }

    @Test("Cancelling the task cancels the run", arguments: Strategy.allCases)
    func cancelledTask(strategy: Strategy) async {
        let width = strategy.width(3)
        let (begun, full, never) = (Shared(0), Gate(), Gate())
        let (kept, areKept, isOver) = (Shared<[CheckedContinuation<Void, Never>]>([]), Gate(), Gate())
        let operation = Self.make(strategy) { item in
            let count = begun.change {
                $0 += 1
                return $0
            }
            if count == width { full.open() }
            await never.opened()
            // Takes its time, although it is cancelled.
            await withCheckedContinuation { continuation in
                let count = kept.change {
                    $0.append(continuation)
                    return $0.count
                }
                if count == width { areKept.open() }
            }
            if item == 0 { throw TestError.first }
        }
        let task = Task {
            defer { isOver.open() }
            return await operation.performOperation(on: Array(0..<10))
        }
        await full.opened()
        task.cancel()
        await areKept.opened()
        for continuation in kept.value.dropLast() { continuation.resume() }
        #expect(!isOver.isOpen, "What is in flight is waited for")
        kept.value.last?.resume()
        let slots = (0..<10).map { $0 == 0 ? "first" : $0 < width ? "success" : "cancelled" }
        #expect(await task.value.map(text) == slots)
        #expect(begun.value == width)
    }

    @Test("In a task that was cancelled before, no item starts", arguments: Strategy.allCases)
    func taskCancelledBefore(strategy: Strategy) async {
        let log = WorkLog()
        let operation = strategy.make { items, _ in log.began(items) }
        let mayBegin = Gate()
        let task = Task {
            // Returns immediately: the task has been cancelled.
            await mayBegin.opened()
            return await operation.performOperation(on: [1, 2])
        }
        task.cancel()
        #expect(await task.value.map(text) == ["cancelled", "cancelled"])
        #expect(log.units.isEmpty)
    }

    @Test("The completion of a run is called outside of tasks, so it may block", arguments: Strategy.allCases)
    func completionOutsideOfTasks(strategy: Strategy) async {
        let operation = Self.make(strategy) { _ in await Task.yield() }
        for items in [[1], [1, 2, 3, 4]] {
            let isInTask = await withCheckedContinuation { continuation in
                operation.performOperation(on: items) { _ in
                    continuation.resume(returning: unsafe withUnsafeCurrentTask { unsafe $0 != nil })
                }
            }
            #expect(!isInTask)
        }
    }

    // MARK: - Failures

    @Test("`failures` pairs items with their errors", arguments: Strategy.allCases)
    func failures(strategy: Strategy) async {
        let attempts = Shared<[Int: Int]>([:])
        let operation = strategy.make(batchSize: 2) { items, completion in
            let isFirst = attempts.change {
                $0[items[0], default: 0] += 1
                return $0[items[0]] == 1
            }
            completion(isFirst && items[0] % 4 == 0 ? TestError.numbered(items[0]) : nil)
        }
        let items = Array(0...8)
        let failures = operation.failures(in: items, errors: await operation.performOperation(on: items))
        let expected = strategy.isBatch ? [0, 1, 4, 5, 8] : [0, 4, 8]
        #expect(failures.map(\.item) == expected && failures.map(\.index) == expected)
        #expect(failures.map { text($0.error) } == expected.map { "numbered(\($0 / 4 * 4))" })
        let retry = failures.map(\.item)
        #expect(operation.failures(in: retry, errors: await operation.performOperation(on: retry)).isEmpty)
    }

    @Test("With invalid options, every item has failed")
    func failuresOfInvalidOptions() async {
        let operation = SequentialBatches(1, 0, .continueAll) { _, _ in }
        let failures = operation.failures(in: [7, 8], errors: await operation.performOperation(on: [7, 8]))
        #expect(failures.map(\.item) == [7, 8])
        #expect(failures.allSatisfy { $0.error is CoordinationError })
        #expect(operation.failures(in: [7, 8], errors: []).isEmpty)
    }
}
