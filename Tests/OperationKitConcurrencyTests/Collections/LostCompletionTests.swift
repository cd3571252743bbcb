import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// An item or batch whose completion can never be called ends with an error.
@Suite("Lost completions", .hangGuard) struct LostCompletionTests {
    @Test("An item or batch whose completion is dropped ends with an error that names it", arguments: Strategy.allCases)
    func droppedCompletion(strategy: Strategy) async {
        let operation = strategy.make(limit: 2) { items, completion in
            if items[0] != 1 { completion(nil) }
        }
        let errors = await operation.performOperation(on: [0, 1, 2])
        let unit = strategy.isBatch ? "batch 1" : "item 1"
        let type = String(describing: type(of: operation))
        #expect(errors.count == 3)
        #expect(errors[0] == nil && errors[2] == nil)
        #expect(errors[1] as? LostFinishError == .unit(name: unit, type: type))
        #expect(errors[1]?.localizedDescription.contains(unit) == true)
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

    @Test("A completion that is kept and dropped much later is lost then", arguments: Strategy.allCases)
    func keptCompletion(strategy: Strategy) async throws {
        let kept = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let run = await startedRun(strategy, keeping: kept)
        #expect(run.isExecuting)
        kept.value = nil
        let error = await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        #expect(error?.leafErrors.first is LostFinishError)
    }

    @Test(
        "A completion that is dropped after the cancellation of the run ends as cancelled", arguments: Strategy.allCases
    )
    func cancelledRun(strategy: Strategy) async {
        let kept = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let run = await startedRun(strategy, keeping: kept)
        run.cancel()
        #expect(run.isExecuting)
        kept.value = nil
        await #expect(throws: CompoundOperationError.self) { try await run.finished() }
        #expect(run.errors.map(text) == ["cancelled"])
        #expect(run.error?.localizedDescription.contains("cancelled") == true)
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

    @Test("The error of an item of a sequence has its index in the sequence", arguments: Strategy.allCases)
    func sequence(strategy: Strategy) async throws {
        let operation = strategy.make(limit: 2) { items, completion in
            if items[0] < 5 { completion(nil) }
        }
        let failures = try await operation.performOperation(onEach: 0..<6)
        #expect(failures.map(\.index) == [5])
        let type = String(describing: type(of: operation))
        #expect(
            failures.first?.error as? LostFinishError
                == .unit(name: strategy.isBatch ? "batch 5" : "item 5", type: type))
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
