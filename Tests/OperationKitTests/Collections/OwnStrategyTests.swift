import Dispatch
import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// A strategy of the type's own, which reports its slots as it likes, and the progress of what succeeds.
@Suite("Collection operations with a strategy of their own", .hangGuard) struct OwnStrategyTests {
    private final class Own: CollectionOperation, Sendable {
        typealias Strategy = @Sendable (_ items: [Int], _ completion: @escaping Completion) -> Void

        private let strategy: Strategy

        init(_ strategy: @escaping Strategy) {
            self.strategy = strategy
        }

        func performOperation(on collection: [Int], completion: @escaping Completion) {
            strategy(collection, completion)
        }
    }

    /// Ways to call a completion twice.
    private static let twice: [Own.Strategy] = [
        { _, completion in
            completion([nil, TestError.first])
            completion([TestError.second])
        },
        { _, completion in
            completion([nil, TestError.first])
            DispatchQueue.global().async { completion([TestError.second]) }
        },
        { _, completion in
            DispatchQueue.global().async {
                completion([nil, TestError.first])
                completion([TestError.second])
            }
        },
    ]

    @Test("Only the first call of the completion counts", arguments: twice.indices)
    func theFirstCallOfTheCompletionCounts(way: Int) async {
        for asksForProgress in [false, true] {
            let own = Own(Self.twice[way])
            let run = own.makeOperation(on: [1, 2])
            let log = EventLog()
            run.asyncCompletionBlock = { log.add(($0 as? CompoundOperationError)?.leafErrors.map(text).joined() ?? "") }
            if asksForProgress { _ = run.progress }
            try? await OperationQueue().run(CompoundOperation(operations: [run]))
            #expect(run.errors.map(text) == ["success", "first"])
            #expect(log.events == ["first"])
            #expect(await own.performOperation(on: [1]).map(text) == ["success", "first"])
        }
    }

    // MARK: - Progress of what succeeds

    private static func fractions(
        of run: CollectionRun<Int>, during: (CollectionRun<Int>) async -> Void = { _ in }
    ) async throws -> [Double] {
        let progress = run.progress
        let seen = Shared<[Double]>([])
        run.asyncCompletionBlock = { _ in seen.change { $0.append(progress.fractionCompleted) } }
        OperationQueue().addOperation(run)
        await during(run)
        try await run.finished()
        return seen.value + [progress.fractionCompleted, run.progress.fractionCompleted]
    }

    @Test("A run that succeeds is complete although items ended with CancellationError", arguments: Strategy.allCases)
    func itemsThatWereCancelledCountAsEnded(strategy: Strategy) async throws {
        let run = strategy.make { items, completion in
            completion(items[0] == 2 ? nil : CancellationError())
        }.makeOperation(on: [1, 2, 3])
        #expect(try await Self.fractions(of: run) == [1, 1, 1])
        #expect(run.errors.map(text) == ["cancelled", "success", "cancelled"])
    }

    @Test("A run that other code finishes successfully is complete", arguments: Strategy.allCases)
    func finishingFromOutsideCompletes(strategy: Strategy) async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let run = strategy.make { items, completion in
            begun.open()
            Thread {
                mayEnd.pass()
                completion(nil)
            }.start()
        }.makeOperation(on: Array(0..<10))
        let fractions = try await Self.fractions(of: run) { run in
            await begun.opened()
            run.finish(with: ())
            mayEnd.open()
        }
        #expect(fractions == [1, 1, 1])
        #expect(run.errors.contains { $0 is CancellationError })

        let early = strategy.make { _, completion in completion(nil) }.makeOperation(on: [1, 2])
        early.finish(with: ())
        #expect(try await Self.fractions(of: early) == [1, 1, 1])
    }
}
