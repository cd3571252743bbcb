import Dispatch
import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The guarantees of collection operations, in all four strategies. They block dispatch threads, so one at a time.
@Suite("Collection operations", .serialized, .hangGuard) struct CollectionOperationTests {

    @Test("Every item or batch has its slot, in the order of the collection", arguments: Strategy.allCases)
    func slots(strategy: Strategy) async {
        for count in [0, 1, 2, 7, 8, 9] {
            for batchSize in 1...(count + 1) {
                let log = WorkLog()
                let operation = strategy.make(batchSize: batchSize) { items, completion in
                    log.began(items)
                    completion(items[0] % 2 == 1 ? TestError.numbered(items[0]) : nil)
                }
                let (errors, calls) = await operation.run(on: Array(0..<count))
                let units = strategy.units(count, batchSize: batchSize)
                #expect(errors.map(text) == units.map { $0[0] % 2 == 1 ? "numbered(\($0[0]))" : "success" })
                #expect(log.units.sorted { $0[0] < $1[0] } == units)
                if !strategy.isParallel { #expect(log.units == units, "One after the other means in order") }
                #expect(calls == 1)
            }
        }
    }

    @Test("Ends that come out of order fill their own slots", arguments: Strategy.allCases.filter(\.isParallel))
    func endsOutOfOrder(strategy: Strategy) async {
        let log = WorkLog()
        let seed = SplitMix64.freshSeed()
        let random = Shared(SplitMix64(seed: seed))
        let operation = strategy.make(limit: 8) { items, completion in
            log.keep { _ in completion(TestError.numbered(items[0])) }
            // All in flight, in one step: a unit that is kept while these end belongs to the next eight.
            let kept = random.change { log.takeKept(atLeast: 8).shuffled(using: &$0) }
            for completion in kept { completion(nil) }
        }
        let (errors, _) = await operation.run(on: Array(0..<64))
        #expect(errors.map(text) == (0..<64).map { "numbered(\($0))" }, "seed \(seed)")
    }

    /// When and how often the end of a unit is reported.
    enum Report: CaseIterable, Sendable {
        case synchronously, onAnotherThread, twice, onTwoThreads, lateAgain

        func callAsFunction(_ completion: @escaping @Sendable ((any Error)?) -> Void, _ error: (any Error)?) {
            switch self {
            case .synchronously:
                completion(error)
            case .onAnotherThread:
                DispatchQueue.global().async { completion(error) }
            case .twice:
                completion(error)
                completion(TestError.second)
            case .onTwoThreads:
                DispatchQueue.global().async {
                    completion(error)
                    DispatchQueue.global().async { completion(TestError.second) }
                }
                return
            case .lateAgain:
                completion(error)
                DispatchQueue.global().async { completion(TestError.second) }
            }
        }
    }

    @Test("Only the first report of an end counts, on whatever thread", arguments: Strategy.allCases, Report.allCases)
    func repeatedReports(strategy: Strategy, report: Report) async {
        for batchSize in [1, 3] {
            let operation = strategy.make(batchSize: batchSize) { items, completion in
                report(completion, items[0] % 2 == 1 ? TestError.numbered(items[0]) : nil)
            }
            let (errors, calls) = await operation.run(on: Array(0..<100))
            let units = strategy.units(100, batchSize: batchSize)
            #expect(errors.map(text) == units.map { $0[0] % 2 == 1 ? "numbered(\($0[0]))" : "success" })
            #expect(calls == 1)
        }
    }

    @Test("Ends may be reported from within each other", arguments: Strategy.allCases)
    func nestedReports(strategy: Strategy) async {
        // Each unit reports the end of the one before it, from inside its own call; the last one its own, too.
        let log = WorkLog()
        let operation = strategy.make(limit: 2) { items, completion in
            if !strategy.isParallel || items[0] == 999 { return [completion].forEach { $0(nil) } }
            for earlier in log.exchangeKept(for: completion) { earlier(nil) }
            if items[0] == 998 { log.takeKept().forEach { $0(nil) } }
        }
        let (errors, calls) = await operation.run(on: Array(0..<1000))
        #expect(errors.count == 1000 && errors.allSatisfy { $0 == nil })
        #expect(calls == 1)
    }

    @Test("A run may start inside the completion of another")
    func nestedRuns() async {
        let operation = ParallelItems(2, 1, .continueAll) { _, completion in completion(nil) }
        let counts = await withCheckedContinuation { continuation in
            operation.performOperation(on: [1, 2]) { first in
                operation.performOperation(on: [3, 4, 5]) { continuation.resume(returning: [first.count, $0.count]) }
            }
        }
        #expect(counts == [2, 3])
    }

    @Test("No unit starts on the stack of the caller or of a completion", arguments: Strategy.allCases)
    func stacks(strategy: Strategy) async {
        let inside = Shared<Set<ObjectIdentifier>>([])
        let wrong = Shared(0)
        let operation = strategy.make { items, completion in
            let thread = ObjectIdentifier(Thread.current)
            if inside.value.contains(thread) { wrong.change { $0 += 1 } }
            DispatchQueue.global().async {
                let thread = ObjectIdentifier(Thread.current)
                inside.change { _ = $0.insert(thread) }
                completion(nil)
                inside.change { _ = $0.remove(thread) }
            }
        }
        await onThread {
            let caller = ObjectIdentifier(Thread.current)
            inside.change { _ = $0.insert(caller) }
            let over = DispatchSemaphore(value: 0)
            operation.performOperation(on: Array(0..<200)) { _ in over.signal() }
            over.wait()
        }
        #expect(wrong.value == 0)
    }

    /// Debug builds with all checks take a twentieth.
    #if DEBUG
    static let many = 50_000
    #else
    static let many = 1_000_000
    #endif

    @Test("Many synchronous items do not grow the stack", arguments: Strategy.allCases)
    func manySynchronousItems(strategy: Strategy) async {
        // The stack of a dispatch worker is small; recursion of this depth overflows any.
        let operation = strategy.make(batchSize: 1) { items, completion in completion(nil) }
        let (errors, _) = await operation.run(on: Array(0..<Self.many))
        #expect(errors.count == Self.many)
        #expect(errors.allSatisfy { $0 == nil })
    }

    @Test("Many items that end on other threads all end", arguments: Strategy.allCases)
    func manyAsynchronousItems(strategy: Strategy) async {
        let operation = strategy.make { items, completion in DispatchQueue.global().async { completion(nil) } }
        let (errors, _) = await operation.run(on: Array(0..<20_000))
        #expect(errors.count == 20_000)
    }

    @Test("The limit is reached and never exceeded", arguments: Strategy.allCases, [1, 2, 5, 16])
    func limit(strategy: Strategy, limit: Int) async {
        let log = WorkLog()
        let reached = Gate()
        let operation = strategy.make(limit: limit) { items, completion in
            log.began(items)
            log.keep { error in
                log.ended()
                completion(error)
            }
            if log.keptCount == strategy.width(limit) { reached.open() }
        }
        async let result = operation.run(on: Array(0..<40))
        await reached.opened()
        #expect(log.units.count == strategy.width(limit), "Nothing more begins while the limit is reached")
        while log.units.count < 40 || log.inFlight > 0 {
            for completion in log.takeKept() { completion(nil) }
            await Task.yield()
        }
        #expect(await result.errors.count == 40)
        #expect(log.mostInFlight == strategy.width(limit))
    }

    @Test("Items that block their threads reach the limit, too", arguments: [2, 3])
    func blockingItems(limit: Int) async {
        let log = WorkLog()
        let line = StartLine(limit)
        let operation = ParallelItems(limit, 1, .continueAll) { items, completion in
            log.began(items)
            // No thread goes on until as many are here.
            line.meet()
            log.ended()
            completion(nil)
        }
        #expect(await operation.run(on: Array(0..<(limit * 10))).errors.count == limit * 10)
        #expect(log.mostInFlight == limit)
    }

    @Test("The default limit of parallel items is the number of processors")
    func defaultLimit() {
        final class Defaults: ParallelItemOperation {
            func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
        }
        #expect(Defaults().maxConcurrentOperationCount == ProcessInfo.processInfo.activeProcessorCount)
        #expect(Defaults().failurePolicy == .continueAll)
    }

    @Test("The first failure, not a cancellation, stops the run if the policy says so", arguments: Strategy.allCases)
    func failurePolicy(strategy: Strategy) async {
        let operation = strategy.make(limit: 1, policy: .cancelRemaining) { items, completion in
            completion(items[0] == 1 ? CancellationError() : items[0] == 3 ? TestError.first : nil)
        }
        let (errors, _) = await operation.run(on: Array(0..<6))
        #expect(errors.map(text) == ["success", "cancelled", "success", "first", "cancelled", "cancelled"])
    }

    @Test("An empty collection completes immediately", arguments: Strategy.allCases)
    func emptyCollection(strategy: Strategy) {
        let log = EventLog()
        strategy.make { _, _ in log.add("work") }.performOperation(on: []) { log.add("\($0.count) errors") }
        #expect(log.events == ["0 errors"])
    }

    @Test(
        "A batch size below 1 is reported, and nothing runs", arguments: Strategy.allCases.filter(\.isBatch),
        [0, -1, .min])
    func invalidBatchSize(strategy: Strategy, size: Int) {
        for items in [[], [1, 2, 3]] {
            let log = EventLog()
            let operation = strategy.make(batchSize: size) { _, _ in log.add("work") }
            operation.performOperation(on: items) { log.add($0.map(text).joined()) }
            let type = strategy.isParallel ? "ParallelBatches" : "SequentialBatches"
            #expect(log.events == [text(CoordinationError.invalidBatchSize(type: type, batchSize: size))])
        }
    }

    @Test(
        "A limit below 1 is reported, and nothing runs", arguments: Strategy.allCases.filter(\.isParallel),
        [0, -1, .min])
    func invalidLimit(strategy: Strategy, limit: Int) {
        for items in [[], [1, 2, 3]] {
            let log = EventLog()
            let operation = strategy.make(limit: limit) { _, _ in log.add("work") }
            operation.performOperation(on: items) { log.add($0.map(text).joined()) }
            let type = strategy.isBatch ? "ParallelBatches" : "ParallelItems"
            let error = CoordinationError.invalidLimit(type: type, maxConcurrentOperationCount: limit)
            #expect(log.events == [text(error)])
        }
    }

    @Test("The largest limit and batch size work", arguments: Strategy.allCases)
    func largestValues(strategy: Strategy) async {
        let operation = strategy.make(limit: .max, batchSize: .max) { _, completion in completion(nil) }
        #expect(await operation.run(on: [1, 2, 3]).errors.count == (strategy.isBatch ? 1 : 3))
    }

    @Test("The object is kept alive during the run, and nothing is kept afterward", arguments: Strategy.allCases)
    func lifetime(strategy: Strategy) async {
        let tracker = LeakTracker()
        let log = WorkLog()
        let begun = Gate()
        let over = Gate()
        do {
            let token = tracker.token("completion")
            let operation = strategy.make { items, completion in
                log.keep(completion)
                begun.open()
            }
            tracker.track(operation, "operation")
            operation.performOperation(on: [1]) { _ in
                token.use()
                over.open()
            }
        }
        await begun.opened()
        #expect(tracker.alive.sorted() == ["completion", "operation"])
        // A completion that is kept forever must not keep the run.
        let kept = log.takeKept()
        for completion in kept { completion(nil) }
        await over.opened()
        await tracker.expectAllReleased()
        for completion in kept { completion(nil) }
    }

    @Test("A run whose completions are dropped is released", arguments: Strategy.allCases)
    func forgottenItems(strategy: Strategy) async {
        let tracker = LeakTracker()
        let begun = Gate()
        do {
            let token = tracker.token("completion")
            let operation = strategy.make { items, completion in begun.open() }
            tracker.track(operation, "operation")
            operation.performOperation(on: [1, 2]) { _ in token.use() }
            let run = tracker.track(operation.makeOperation(on: [1]), "run")
            run.start()
        }
        await begun.opened()
        await tracker.expectAllReleased()
    }
}
