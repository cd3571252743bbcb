import OperationKitTestSupport

@testable import OperationKit

@Suite("Collection operations with a run of their own", .serialized, .hangGuard) struct OwnImplementationTests {
    private typealias Run =
        @Sendable (_ items: [Int], _ completion: @escaping @Sendable ([(any Error)?]) -> Void) -> Void

    private class Mock: @unchecked Sendable {
        let batchSize = 2
        let log = EventLog()
        private let run: Run

        init(_ run: @escaping Run) {
            self.run = run
        }

        func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {
            log.add("run \(collection)")
            run(collection, completion)
        }

        func performOperation(onItem item: Int, completion: @escaping @Sendable ((any Error)?) -> Void) {
            log.add("item \(item)")
            completion(nil)
        }

        func performOperation(onBatch batch: [Int], completion: @escaping @Sendable ((any Error)?) -> Void) {
            log.add("batch \(batch)")
            completion(nil)
        }
    }

    private final class A: Mock, ParallelItemOperation, @unchecked Sendable {}
    private final class B: Mock, ParallelBatchOperation, @unchecked Sendable {}
    private final class C: Mock, SequentialItemOperation, @unchecked Sendable {}
    private final class D: Mock, SequentialBatchOperation, @unchecked Sendable {}

    private static func make(_ strategy: Strategy, _ run: @escaping Run) -> any Mock & CollectionOperation<Int> {
        switch strategy {
        case .parallelItems: A(run)
        case .parallelBatches: B(run)
        case .sequentialItems: C(run)
        case .sequentialBatches: D(run)
        }
    }

    /// What a mock does: it reports what it likes, or hands its collection to another object and changes the result.
    private static let runs: [@Sendable (Strategy) -> Run] = [
        { _ in { _, completion in completion([nil, TestError.second, nil]) } },
        { strategy in
            { [base = base(strategy)] items, completion in
                base.performOperation(on: items) { completion($0.map { $0 == nil ? TestError.second : nil }) }
            }
        },
        { strategy in
            { [base = base(strategy)] items, completion in
                Task { completion(await base.performOperation(on: items).map { $0 == nil ? TestError.second : nil }) }
            }
        },
    ]

    private static func base(_ strategy: Strategy) -> any CollectionOperation<Int> & Sendable {
        strategy.make { items, completion in completion(items[0] == 2 ? nil : TestError.first) }
    }

    @Test("Every form calls the type's own run, which may forward", arguments: Strategy.allCases, runs.indices)
    func everyFormCallsIt(strategy: Strategy, run: Int) async {
        let mock = Self.make(strategy, Self.runs[run](strategy))
        func expectResults(_ errors: [(any Error)?]) {
            #expect(errors.map(text) == ["success", "second", "success"])
        }
        expectResults(await mock.run(on: [1, 2, 3]).errors)
        expectResults(await mock.performOperation(on: [1, 2, 3]))
        for operation in [mock.makeOperation(on: [1, 2, 3]), mock.makeOperation().with(input: [1, 2, 3])] {
            try? await OperationQueue().run(CompoundOperation(operations: [operation]))
            expectResults(operation.errors)
        }
        #expect(mock.log.events == Array(repeating: "run [1, 2, 3]", count: 4))
    }

    @Test("Over sequences, a type's own run gives way to its items or batches") func sequences() async throws {
        for strategy in Strategy.allCases {
            let mock = Self.make(strategy) { _, completion in completion([TestError.first]) }
            #expect(try await mock.performOperation(onEach: [1, 2, 3]).isEmpty)
            #expect(
                mock.log.events.sorted()
                    == (strategy.isBatch ? ["batch [1, 2]", "batch [3]"] : ["item 1", "item 2", "item 3"]))
        }
    }

    @Test("A run of a type's own cannot be cancelled in flight, but before", arguments: Strategy.allCases)
    func cancellation(strategy: Strategy) async {
        let (begun, kept) = (Gate(), Shared<(@Sendable ([(any Error)?]) -> Void)?>(nil))
        let mock = Self.make(strategy) { _, completion in
            kept.value = completion
            begun.open()
        }
        let run = mock.makeOperation(on: [1, 2])
        OperationQueue().addOperation(run)
        await begun.opened()
        run.cancel()
        #expect(!run.isFinished)
        kept.value?([nil, TestError.first])
        try? await run.finished()
        #expect(run.errors.map(text) == ["success", "first"])
        #expect(brief(run.error).hasSuffix(" cancelled [1 \(strategy.isBatch ? "batch 1" : "item 1")]"))

        let cancelled = mock.makeOperation(on: [1, 2])
        cancelled.cancel()
        cancelled.start()
        #expect(cancelled.errors.map(text) == strategy.units(2, batchSize: 2).map { _ in "cancelled" })
        #expect(mock.log.events == ["run [1, 2]"])
    }

    /// Does something while a run asks for its options.
    private final class Busy: ParallelItemOperation, @unchecked Sendable {
        let (log, whenAsked) = (EventLog(), Shared<@Sendable () -> Void>({}))

        var maxConcurrentOperationCount: Int {
            whenAsked.value()
            return 2
        }

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            log.add("item \(item)")
            completion(nil)
        }
    }

    @Test("A run that is ended while its options are read starts none", arguments: [false, true])
    func optionsThatEndTheRun(isCancelled: Bool) {
        let operation = Busy()
        let run = operation.makeOperation(on: [1, 2])
        operation.whenAsked.value = { [unowned run] in
            if isCancelled { run.cancel() } else { run.finish(withError: TestError.reason) }
        }
        run.start()
        #expect(run.isFinished && operation.log.events == [])
        #expect(run.errors.map(text) == ["cancelled", "cancelled"])
        #expect(isCancelled ? run.error is CompoundOperationError : text(run.error) == "reason")
    }

    @Test("Only the first call of the completion counts", arguments: Report.allCases)
    func theFirstCallOfTheCompletionCounts(report: Report) async {
        for asksForProgress in [false, true] {
            let own = OwnStrategy { _, completion in
                report({ completion($0 == nil ? [nil, TestError.first] : [$0]) }, nil)
            }
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

    @Test(
        "A run that succeeds is complete, also if its items were cancelled, or other code has finished it",
        arguments: Strategy.allCases, ["cancelled items", "finished", "finished before"])
    func complete(strategy: Strategy, way: String) async throws {
        let (begun, seen, kept) = (Gate(), Shared<[Double]>([]), WorkLog())
        let run = strategy.make { _, completion in
            if way == "cancelled items" { return completion(CancellationError()) }
            kept.keep(completion)
            begun.open()
        }.makeOperation(on: Array(0..<10))
        let progress = run.progress
        run.asyncCompletionBlock = { _ in seen.change { $0.append(progress.fractionCompleted) } }
        if way == "finished before" { run.finish(with: ()) }
        OperationQueue().addOperation(run)
        if way == "finished" {
            await begun.opened()
            run.finish(with: ())
            await eventually("it does not end") {
                for completion in kept.takeKept() { completion(nil) }
                return run.isFinished
            }
        }
        try await run.finished()
        #expect(seen.value + [progress.fractionCompleted, run.progress.fractionCompleted] == [1, 1, 1])
        #expect(run.errors.contains { $0 is CancellationError })
    }
}

@Suite("Items, batches and children of collection operations", .hangGuard) struct CollectionChildrenTests {
    /// One of the methods would never be called.
    private final class Both: SequentialItemOperation, SequentialBatchOperation, Sendable {
        let batchSize = 2
        let noun = "item"
        let log = EventLog()

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            log.add("item \(item)")
            completion(nil)
        }

        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) {
            log.add("batch \(batch)")
            completion(nil)
        }
    }

    @Test("A class that works by items and by batches is an error by name") func itemsAndBatches() async throws {
        let both = Both()
        let errors = await both.performOperation(on: [1, 2, 3])
        #expect(errors.map { $0 as? CoordinationError } == [.itemsAndBatches(type: "Both")])
        await #expect(throws: CoordinationError.itemsAndBatches(type: "Both")) {
            try await both.performOperation(onEach: 1...3)
        }
        let run = both.makeOperation(on: [1, 2, 3])
        await #expect(throws: (any Error).self) { try await OperationQueue().run(run) }
        #expect(both.log.events.isEmpty)
    }

    private final class Items: ParallelItemOperation {
        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
    }

    private final class Batches: ParallelBatchOperation {
        let batchSize = 2
        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) { completion(nil) }
    }

    @Test("Parallel types have as many items or batches in flight as there are processors") func limits() {
        let count = ProcessInfo.processInfo.activeProcessorCount
        #expect(Items().maxConcurrentOperationCount == count && Batches().maxConcurrentOperationCount == count)
    }

    @Test("A run over a collection has no operations as its children, at any time") func noOperations() async throws {
        let run = Strategy.parallelItems.make { _, completion in completion(nil) }.makeOperation(on: [1, 2, 3])
        let child = AsyncBlockOperation { $0() }
        func expectNone() throws {
            let children = try #require(run.children)
            children.childWasCancelled(child)
            #expect(children.operation === run)
            #expect(children.operations(atMost: 10)?.isEmpty == true)
            #expect(children.snapshot(atMost: 10) == nil && children.childProgressed(child, to: 1) == nil)
            #expect(children.dependencies(of: run, recording: true) == nil)
            #expect(children.weightedUnits == nil && children.progressDescription == nil)
        }
        try expectNone()
        run.start()
        try await run.finished()
        try expectNone()
        #expect(!child.isCancelled)
    }
}

#if DEBUG && (os(macOS) || os(Linux))
@Suite("Reports of lost completions", .hangGuard) struct LostCompletionReportTests {
    /// Loses the completion of each item, or of all.
    private final class Losing: ParallelItemOperation {
        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {}
    }

    private final class LosingAll: CollectionOperation {
        func performOperation(on collection: [Int], completion: @escaping Completion) {}
    }

    @Test("A completion that is lost is reported") func reports() async {
        await #expect(processExitsWith: .success) {
            let reports = misuseReports { "\($0)" }
            _ = await Losing().performOperation(on: [1, 2])
            _ = await LosingAll().performOperation(on: [1, 2])
            await eventually("are \(reports.value)") { reports.value.count == 3 }
        }
    }
}
#endif
