import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

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
        "A completion that is lost after the cancellation of the task ends as cancelled", arguments: Strategy.allCases)
    func lostAfterTheCancellation(strategy: Strategy) async {
        let (log, kept, failed) = (WorkLog(), Gate(), EventLog())
        let operation = strategy.make(limit: 1) { _, completion in
            log.keep(completion)
            kept.open()
        }
        let task = Task { try await operation.performOperation(onEach: 0...) { failed.add(text($0.error)) } }
        await kept.opened()
        task.cancel()
        _ = log.takeKept()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(failed.events == ["cancelled"])
    }

    /// A run whose only unit has started, and has had its completion kept.
    private func startedRun(
        _ strategy: Strategy, keeping kept: Shared<(@Sendable ((any Error)?) -> Void)?>
    ) async -> CollectionRun<Int> {
        let begun = Gate()
        let run = strategy.make { _, completion in
            kept.value = completion
            begun.open()
        }.makeOperation(on: [1])
        run.start()
        await begun.opened()
        return run
    }

    @Test("A completion that is kept and dropped much later is lost then", arguments: Strategy.allCases, [false, true])
    func keptCompletion(strategy: Strategy, isCancelled: Bool) async throws {
        let kept = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let run = await startedRun(strategy, keeping: kept)
        if isCancelled { run.cancel() }
        #expect(run.isExecuting)
        kept.value = nil
        let error = await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        if isCancelled {
            #expect(run.errors.map(text) == ["cancelled"])
            #expect(error?.localizedDescription.contains("cancelled") == true)
        } else {
            #expect(error?.leafErrors.first is LostFinishError)
        }
    }

    @Test("A completion that was called can be dropped", arguments: Strategy.allCases)
    func calledCompletion(strategy: Strategy) async {
        let kept = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let errors = await strategy.make { items, completion in
            completion(items[0] == 1 ? TestError.first : nil)
            kept.value = completion
        }.performOperation(on: [0, 1, 2])
        kept.value = nil
        #expect(errors.map(text) == ["success", "first", "success"])
    }

    @Test("A completion that is dropped under a lock is reported on another thread", arguments: Strategy.allCases)
    func droppedUnderALock(strategy: Strategy) async {
        let lock = NSLock()
        let kept = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let begun = Gate()
        let run = strategy.make { _, completion in
            kept.value = completion
            begun.open()
        }.makeOperation(on: [1])
        run.asyncCompletionBlock = { _ in lock.withLock {} }
        run.start()
        await begun.opened()
        await onThread { lock.withLock { kept.value = nil } }
        try? await run.finished()
        #expect(run.errors.count == 1)
    }

    @Test("A type's own way that drops its completion ends the run with an error") func ownWay() async {
        final class Forgetful: CollectionOperation {
            func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {}
        }
        let run = Forgetful().makeOperation(on: [1, 2])
        await #expect(throws: LostFinishError.run(name: "Forgetful")) { try await OperationQueue().run(run) }
        #expect(run.errors.count == 2 && run.errors.allSatisfy { $0 is LostFinishError })
        let errors: [(any Error)?] = await Forgetful().performOperation(on: [1])
        #expect(errors.count == 1 && errors[0] is LostFinishError)
    }

    @Test("A type's own way that drops its completion after the cancellation of the run ends it as cancelled")
    func ownWayCancelled() async {
        final class Keeping: CollectionOperation {
            let kept = Shared<(@Sendable ([(any Error)?]) -> Void)?>(nil)
            func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {
                kept.value = completion
            }
        }
        let operation = Keeping()
        let run = operation.makeOperation(on: [1, 2])
        await onThread {
            run.start()
            run.cancel()
        }
        #expect(run.isExecuting)
        operation.kept.value = nil
        await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        #expect(run.errors.map(text) == ["cancelled", "cancelled"])
    }
}
