import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// What a failure means for the items in flight, in every form of a run.
@Suite("Failures of collection operations", .serialized, .hangGuard) struct CollectionFailureTests {
    private class Numbers: @unchecked Sendable {
        let maxConcurrentOperationCount = 3
        let batchSize = 1
        let failurePolicy: FailurePolicy
        let work: @Sendable (Int) async throws -> Void

        init(_ failurePolicy: FailurePolicy, _ work: @escaping @Sendable (Int) async throws -> Void) {
            self.failurePolicy = failurePolicy
            self.work = work
        }

        func performOperation(onItem item: Int) async throws { try await work(item) }
        func performOperation(onBatch batch: [Int]) async throws { try await work(batch[0]) }
    }

    private final class Items: Numbers, ParallelItemOperation, AsyncItemOperation, @unchecked Sendable {}
    private final class Batches: Numbers, ParallelBatchOperation, AsyncBatchOperation, @unchecked Sendable {}

    /// The forms of a run.
    enum Form: CaseIterable, Sendable {
        case completion, await, operation, sequence, asyncSequence

        /// - Returns: What became of the items that failed or did not start.
        func perform(_ operation: some CollectionOperation<Int>, on items: Range<Int>) async throws -> [Int: String] {
            switch self {
            case .completion:
                return Self.failures(await operation.run(on: Array(items)).errors)
            case .await:
                return Self.failures(await operation.performOperation(on: Array(items)))
            case .operation:
                let run = operation.makeOperation(on: Array(items))
                try? await OperationQueue().run(run)
                let failed = run.errors.enumerated().filter { $1 != nil && !($1 is CancellationError) }.map(\.offset)
                // The failure of the run is that of the items that failed, and no cancellation.
                guard case .suboperationFailure(_, let errors) = run.error as? CompoundOperationError else {
                    #expect(failed.isEmpty && run.error == nil && !run.isCancelled)
                    return Self.failures(run.errors)
                }
                #expect(errors.map(\.index) == failed && !run.isCancelled)
                return Self.failures(run.errors)
            case .sequence:
                return Self.failures(try await operation.performOperation(onEach: items))
            case .asyncSequence:
                let stream = AsyncStream { continuation in
                    for item in items { continuation.yield(item) }
                    continuation.finish()
                }
                return Self.failures(try await operation.performOperation(onEach: stream))
            }
        }

        /// Whether items that have not started are reported.
        var reportsRest: Bool { self == .completion || self == .await || self == .operation }

        private static func failures(_ errors: [(any Error)?]) -> [Int: String] {
            Dictionary(uniqueKeysWithValues: errors.enumerated().filter { $1 != nil }.map { ($0, text($1)) })
        }

        private static func failures(_ failures: [CollectionFailure<Int>]) -> [Int: String] {
            Dictionary(uniqueKeysWithValues: failures.map { ($0.index, text($0.error)) })
        }
    }

    @Test(
        "The first failure cancels async items in flight if the policy says so", arguments: Form.allCases,
        [false, true])
    func firstFailureCancelsItemsInFlight(form: Form, isBatch: Bool) async throws {
        let (begun, full, never) = (Shared(0), Gate(), Gate())
        let work: @Sendable (Int) async throws -> Void = { item in
            let count = begun.change {
                $0 += 1
                return $0
            }
            if count == 3 { full.open() }
            if item == 1 {
                await full.opened()
                throw TestError.first
            }
            await never.opened()
            try Task.checkCancellation()
        }
        let failures =
            isBatch
            ? try await form.perform(Batches(.cancelRemaining, work), on: 0..<10)
            : try await form.perform(Items(.cancelRemaining, work), on: 0..<10)
        var expected = [0: "cancelled", 1: "first", 2: "cancelled"]
        if form.reportsRest { for index in 3..<10 { expected[index] = "cancelled" } }
        #expect(failures == expected && begun.value == 3)
    }

    @Test("What an item makes of its cancellation after a failure is its outcome", arguments: Form.allCases)
    func outcomeOfACancelledItem(form: Form) async throws {
        let (begun, full, never) = (Shared(0), Gate(), Gate())
        let operation = Items(.cancelRemaining) { item in
            let count = begun.change {
                $0 += 1
                return $0
            }
            if count == 3 { full.open() }
            await (item == 1 ? full : never).opened()
            if item == 1 { throw TestError.first }
            if item == 2 { throw TestError.second }
        }
        let failures = try await form.perform(operation, on: 0..<3)
        #expect(failures == [1: "first", 2: "second"])
    }

    @Test(
        "A failure that the policy allows, or a cancellation, leaves items in flight alone", arguments: Form.allCases,
        [FailurePolicy.continueAll, .cancelRemaining])
    func itemsInFlightAreLeftAlone(form: Form, policy: FailurePolicy) async throws {
        let (last, wasCancelled) = (Gate(), Shared(false))
        let operation = Items(policy) { item in
            switch item {
            case 0:
                await last.opened()
                wasCancelled.value = Task.isCancelled
            case 1: throw policy == .continueAll ? TestError.first : CancellationError()
            case 9: last.open()
            default: break
            }
        }
        let failures = try await form.perform(operation, on: 0..<10)
        #expect(failures == [1: policy == .continueAll ? "first" : "cancelled"])
        #expect(!wasCancelled.value)
    }

    @Test("Items with a completion that are in flight are waited for after a failure", arguments: [false, true])
    func itemsWithACompletion(isBatch: Bool) async {
        let (log, full, isOver) = (WorkLog(), Gate(), Gate())
        let operation = (isBatch ? Strategy.parallelBatches : .parallelItems).make(policy: .cancelRemaining) {
            items, completion in
            log.began(items)
            log.keep(completion)
            if log.keptCount == 3 { full.open() }
        }
        let errors = Task {
            defer { isOver.open() }
            return await operation.performOperation(on: Array(0..<10))
        }
        await full.opened()
        let kept = log.takeKept()
        kept[0](TestError.first)
        kept[1](nil)
        #expect(!isOver.isOpen)
        kept[2](nil)
        let slots = await errors.value.map(text)
        #expect(slots.prefix(3).sorted() == ["first", "success", "success"])
        #expect(slots.dropFirst(3).allSatisfy { $0 == "cancelled" } && log.units.count == 3)
    }

    @Test("A failure cancels items in flight while a sequence has not given the next one")
    func sequenceThatWaits() async throws {
        let (items, continuation) = AsyncStream.makeStream(of: Int.self)
        let (begun, cancelled, never) = (Shared(0), Gate(), Gate())
        let operation = Items(.cancelRemaining) { item in
            begun.change { $0 += 1 }
            if item == 1 { throw TestError.first }
            await never.opened()
            cancelled.open()
            try Task.checkCancellation()
        }
        continuation.yield(0)
        let task = Task { try await operation.performOperation(onEach: items) }
        await eventually("the first item has not begun") { begun.value == 1 }
        continuation.yield(1)
        await cancelled.opened()
        continuation.yield(2)
        #expect(try await task.value.map { text($0.error) } == ["cancelled", "first"])
        #expect(begun.value == 2)
    }

    @Test("Cancelling a task cancels the items of a sequence, also if a failure would")
    func cancelledTask() async {
        let (begun, never) = (Shared(0), Gate())
        let operation = Items(.cancelRemaining) { _ in
            begun.change { $0 += 1 }
            await never.opened()
            try Task.checkCancellation()
        }
        let failed = EventLog()
        let task = Task {
            try await operation.performOperation(onEach: 0...) { failed.add("\($0.index) \(text($0.error))") }
        }
        await eventually("not begun") { begun.value == 3 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(failed.events.sorted() == ["0 cancelled", "1 cancelled", "2 cancelled"])
    }
}
