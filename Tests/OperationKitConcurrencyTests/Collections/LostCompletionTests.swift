import OperationKitTestSupport

@testable import OperationKit

/// An item or batch whose completion can never be called ends with an error.
@Suite("Lost completions", .hangGuard) struct LostCompletionTests {
    @Test(
        "Items whose completions are lost end with an error that names them, in their calls and later",
        arguments: Strategy.allCases, [(false, 2), (false, 8), (true, 2)])
    func lostCompletions(strategy: Strategy, form: (isSequence: Bool, limit: Int)) async throws {
        let operation = strategy.make(limit: form.limit) { items, completion in
            switch items[0] % 3 {
            case 0: completion(nil)
            case 1: break
            default: elsewhere { withExtendedLifetime(completion) {} }
            }
        }
        let items = Array(0..<30)
        let failures =
            form.isSequence
            ? try await operation.performOperation(onEach: items)
            : operation.failures(in: items, errors: await operation.performOperation(on: items))
        #expect(failures.map(\.index) == items.filter { $0 % 3 != 0 })
        let type = String(describing: type(of: operation))
        for failure in failures {
            let name = "\(strategy.isBatch ? "batch" : "item") \(failure.index)"
            #expect(failure.error as? LostFinishError == .unit(name: name, type: type))
            #expect(failure.error.localizedDescription.contains(name))
        }
    }

    @Test(
        "A completion that is lost after the cancellation of the task ends as cancelled", arguments: Strategy.allCases,
        [false, true])
    func lostAfterTheCancellation(strategy: Strategy, isAsynchronous: Bool) async {
        let (log, kept, failed) = (WorkLog(), Gate(), EventLog())
        let operation = strategy.make(limit: 1) { _, completion in
            log.keep(completion)
            kept.open()
        }
        let note: @Sendable (CollectionFailure<Int>) -> Void = { failed.add(text($0.error)) }
        let task = Task {
            if !isAsynchronous { return try await operation.performOperation(onEach: 0..., failed: note) }
            try await operation.performOperation(onEach: AsyncStream { $0.yield(0) }, failed: note)
        }
        await kept.opened()
        task.cancel()
        _ = log.takeKept()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(failed.events == ["cancelled"])
    }

    @Test(
        "A completion that is kept and dropped much later, under a lock, is lost then, and reported on another thread",
        arguments: Strategy.allCases, [false, true])
    func keptCompletion(strategy: Strategy, isCancelled: Bool) async throws {
        let (begun, lock, kept) = (Gate(), NSLock(), Shared<(@Sendable ((any Error)?) -> Void)?>(nil))
        let run = strategy.make { _, completion in
            kept.value = completion
            begun.open()
        }.makeOperation(on: [1])
        run.asyncCompletionBlock = { _ in lock.withLock {} }
        run.start()
        await begun.opened()
        if isCancelled { run.cancel() }
        #expect(run.isExecuting)
        await onThread { lock.withLock { kept.value = nil } }
        let error = await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        if isCancelled {
            #expect(run.errors.map(text) == ["cancelled"])
            #expect(error?.localizedDescription.contains("cancelled") == true)
        } else {
            #expect(error?.leafErrors.first is LostFinishError)
        }
    }

    @Test(
        "A type's own way that drops its completion ends the run with an error, or as cancelled",
        arguments: [false, true])
    func ownWay(isCancelled: Bool) async {
        let kept = Shared<(@Sendable ([(any Error)?]) -> Void)?>(nil)
        let operation = OwnStrategy { _, completion in kept.value = completion }
        let run = operation.makeOperation(on: [1, 2])
        await onThread {
            run.start()
            if isCancelled { run.cancel() }
        }
        #expect(run.isExecuting)
        kept.value = nil
        try? await run.finished()
        let lost = LostFinishError.run(name: "OwnStrategy")
        if isCancelled {
            #expect(run.error is CompoundOperationError)
        } else {
            #expect(run.error as? LostFinishError == lost)
        }
        #expect(run.errors.map(text) == Array(repeating: isCancelled ? "cancelled" : text(lost), count: 2))
        let errors = Task { await operation.performOperation(on: [1]) }
        await eventually("not begun") { kept.value != nil }
        kept.value = nil
        #expect(await errors.value.map(text) == [text(lost)])
    }

    private final class OwnBatches: SequentialBatchOperation, Sendable {
        let batchSize = 2

        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) { completion(nil) }

        func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {}
    }

    @Test("A type's own way that drops its completion has a slot for each batch")
    func ownBatches() async {
        let errors = await OwnBatches().performOperation(on: [1, 2, 3])
        #expect(errors.map(text) == Array(repeating: text(LostFinishError.run(name: "OwnBatches")), count: 2))
    }
}
