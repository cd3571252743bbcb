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

    @Test("Of completions that are called on several threads, one counts") func oneOfConcurrentCallsCounts() async {
        for _ in 0..<200 {
            let own = Own { _, completion in
                for number in 0..<4 { DispatchQueue.global().async { completion([TestError.numbered(number)]) } }
            }
            let run = own.makeOperation(on: [1])
            _ = run.progress
            let ends = Shared(0)
            run.asyncCompletionBlock = { _ in ends.change { $0 += 1 } }
            try? await OperationQueue().run(run)
            #expect(ends.value == 1 && run.errors.count == 1)
            #expect((run.error as? CompoundOperationError)?.leafErrors.map(text) == run.errors.map(text))
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

    @Test("A run counts items that ended with CancellationError, and is complete when it has failed")
    func itemsThatWereCancelledCountAsEndedInAFailedRun() async {
        let (progress, seen) = (Shared<Progress?>(nil), Shared<Int64?>(nil))
        let run = SequentialItems(1, 1, .cancelRemaining) { items, completion in
            if items[0] == 2 { seen.value = progress.value?.completedUnitCount }
            completion(items[0] == 1 ? CancellationError() : TestError.first)
        }.makeOperation(on: [1, 2, 3, 4])
        progress.value = run.progress
        try? await OperationQueue().run(run)
        #expect(seen.value == 1)
        #expect(run.progress.completedUnitCount == 4 && run.progress.totalUnitCount == 4)
    }

    @Test("A run that succeeds is complete, whatever slots its own strategy reports", arguments: 0...3)
    func anyNumberOfSlotsIsComplete(count: Int) async throws {
        for error in [nil, CancellationError()] {
            let run = Own { _, completion in
                completion((0..<count).map { $0 == 0 ? error : nil })
            }.makeOperation(on: [1, 2])
            #expect(try await Self.fractions(of: run) == [1, 1, 1])
        }
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

    @Test("Other code may finish the run while it ends")
    func finishingFromOutsideMayMeetTheEnd() async {
        let incomplete = EventLog()
        await race(
            rounds: 2_000, seed: SplitMix64.freshSeed(),
            prepare: { _ -> (run: CollectionRun<Int>, progress: Progress) in
                let run = ParallelItems(2, 1, .continueAll) { _, completion in completion(CancellationError()) }
                    .makeOperation(on: [1, 2, 3])
                let progress = run.progress
                run.asyncCompletionBlock = { error in
                    if error == nil, progress.fractionCompleted != 1 { incomplete.add("\(progress.fractionCompleted)") }
                }
                return (run, progress)
            },
            [
                { @Sendable in
                    $0.run.start()
                    $0.run.waitUntilFinished()
                },
                { @Sendable in $0.run.finish(with: ()) },
            ],
            check: { _, _ in })
        #expect(incomplete.events == [])
    }
}
