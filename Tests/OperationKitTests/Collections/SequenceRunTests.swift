import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// How items with a completion are taken from a sequence and performed. They block dispatch threads, so one at a time.
@Suite("Runs over sequences", .serialized, .hangGuard) struct SequenceRunTests {
    // MARK: - Reading

    @Test("An item is taken when there is room for it, and not before", arguments: Strategy.allCases, [1, 3])
    func laziness(strategy: Strategy, limit: Int) async throws {
        let (log, taken, batchSize) = (WorkLog(), Shared(0), 2)
        let operation = strategy.make(limit: limit, batchSize: batchSize) { items, completion in
            log.keep(completion)
            log.began(items)
        }
        let sequence = Reads { index in
            taken.value = index + 1
            return index < 20 ? index : nil
        }
        let task = Task { try await operation.performOperation(onEach: sequence) }
        let (width, size) = (strategy.width(limit), strategy.isBatch ? batchSize : 1)
        for begun in width...(20 / size) {
            await eventually("\(log.units.count) instead of \(begun) have begun") { log.units.count == begun }
            #expect(taken.value == begun * size)
            // One ends, and one takes its place.
            var kept = log.takeKept()
            kept.removeFirst()(nil)
            for completion in kept { log.keep(completion) }
        }
        for completion in log.takeKept() { completion(nil) }
        #expect(try await task.value.isEmpty && log.units.count == 20 / size)
    }

    @Test("Items are read one at a time, by several threads", arguments: Strategy.allCases, [false, true])
    func oneReader(strategy: Strategy, endsElsewhere: Bool) async throws {
        let (readers, most, log) = (Shared(0), Shared(0), WorkLog())
        let operation = strategy.make(limit: 4) { items, completion in
            log.began(items)
            let end: @Sendable () -> Void = {
                log.ended()
                completion(nil)
            }
            if endsElsewhere { elsewhere(end) } else { end() }
        }
        let count = 3000
        let sequence = Reads { index in
            let now = readers.change {
                $0 += 1
                return $0
            }
            most.change { $0 = max($0, now) }
            defer { readers.change { $0 -= 1 } }
            return index < count ? index : nil
        }
        #expect(try await operation.performOperation(onEach: sequence).isEmpty)
        #expect(most.value == 1)
        #expect(log.units.map { $0[0] }.sorted() == Array(0..<count))
        #expect(log.mostInFlight <= strategy.width(4))
        if !strategy.isParallel { #expect(log.units.map { $0[0] } == Array(0..<count)) }
    }

    @TaskLocal static var local = 0

    @Test("The task of the caller is not there where the sequence is read", arguments: Strategy.allCases)
    func noTask(strategy: Strategy) async throws {
        let (operation, seen) = (strategy.make { _, completion in completion(nil) }, EventLog())
        let sequence = Reads { index in
            seen.add("\(Self.local) \(unsafe withUnsafeCurrentTask { unsafe $0 == nil })")
            return index == 0 ? 0 : nil
        }
        try await Self.$local.withValue(1) { _ = try await operation.performOperation(onEach: sequence) }
        #expect(seen.events == ["0 true", "0 true"])
    }

    private final class AsyncItems: SequentialItemOperation, AsyncItemOperation {
        func performOperation(onItem item: Int) async throws {}
    }

    @Test("Where the method is async, the sequence is read in the task of the caller") func task() async throws {
        let seen = EventLog()
        let sequence = Reads { index in
            seen.add("\(Self.local)")
            return index == 0 ? 0 : nil
        }
        try await Self.$local.withValue(1) { _ = try await AsyncItems().performOperation(onEach: sequence) }
        #expect(seen.events == ["1", "1"])
    }

    // MARK: - Performing

    @Test(
        "Parallel items are performed at the same time, also if their calls last",
        arguments: Strategy.allCases.filter(\.isParallel))
    func width(strategy: Strategy) async throws {
        let (log, full) = (WorkLog(), Gate())
        let operation = strategy.make(limit: 3) { items, completion in
            log.began(items)
            if log.units.count == 3 { full.open() }
            full.pass()
            log.ended()
            completion(nil)
        }
        #expect(try await operation.performOperation(onEach: 0..<10).isEmpty)
        #expect(log.mostInFlight == 3 && log.units.count == 10)
    }

    @Test("An item is in flight until its call has returned", arguments: Strategy.allCases)
    func callThatLasts(strategy: Strategy) async throws {
        let (log, began, mayReturn, isOver) = (WorkLog(), Gate(), Gate(), Gate())
        let operation = strategy.make(limit: 1) { items, completion in
            log.began(items)
            completion(nil)
            if items[0] == 1 {
                began.open()
                mayReturn.pass()
            }
            log.ended()
        }
        let task = Task {
            defer { isOver.open() }
            return try await operation.performOperation(onEach: 0..<2)
        }
        await began.opened()
        #expect(!isOver.isOpen)
        mayReturn.open()
        #expect(try await task.value.isEmpty)
        #expect(log.mostInFlight == 1 && log.inFlight == 0)
    }

    @Test("No item is performed or read on the stack of the caller or of a completion", arguments: Strategy.allCases)
    func stacks(strategy: Strategy) async throws {
        let inside = Shared<Set<ObjectIdentifier>>([])
        let wrong = Shared(0)
        let look: @Sendable () -> Void = {
            if inside.value.contains(ObjectIdentifier(Thread.current)) { wrong.change { $0 += 1 } }
        }
        let operation = strategy.make { items, completion in
            look()
            elsewhere {
                let thread = ObjectIdentifier(Thread.current)
                inside.change { _ = $0.insert(thread) }
                completion(items[0] % 3 == 0 ? TestError.first : nil)
                inside.change { _ = $0.remove(thread) }
            }
        }
        let sequence = Reads { index in
            look()
            return index < 300 ? index : nil
        }
        try await operation.performOperation(onEach: sequence) { _ in look() }
        #expect(wrong.value == 0)
    }

    @Test("Many synchronous items of a sequence do not grow the stack", arguments: Strategy.allCases)
    func manySynchronousItems(strategy: Strategy) async throws {
        let count = Shared(0)
        let operation = strategy.make { _, completion in
            count.change { $0 += 1 }
            completion(nil)
        }
        #expect(try await operation.performOperation(onEach: 0..<CollectionOperationTests.many).isEmpty)
        #expect(count.value == CollectionOperationTests.many)
    }

    // MARK: - Ends of items

    @Test(
        "Only the first report of the end of an item of a sequence counts", arguments: Strategy.allCases,
        CollectionOperationTests.Report.allCases)
    func repeatedReports(strategy: Strategy, report: CollectionOperationTests.Report) async throws {
        for batchSize in [1, 3] {
            let operation = strategy.make(batchSize: batchSize) { items, completion in
                report(completion, items[0] % 2 == 1 ? TestError.numbered(items[0]) : nil)
            }
            let failures = try await operation.performOperation(onEach: 0..<100)
            let failed = strategy.units(100, batchSize: batchSize).filter { $0[0] % 2 == 1 }
            #expect(failures.map(\.index) == failed.flatMap { $0 })
            #expect(
                failures.map { text($0.error) } == failed.flatMap { unit in unit.map { _ in "numbered(\(unit[0]))" } })
        }
    }

    @Test("A completion may be called with a lock held that receiving the failure takes", arguments: Strategy.allCases)
    func lockHeld(strategy: Strategy) async throws {
        for endsElsewhere in [false, true] {
            let (lock, failed) = (NSLock(), Shared(0))
            let operation = strategy.make { _, completion in
                let end: @Sendable () -> Void = { lock.withLock { completion(TestError.first) } }
                if endsElsewhere { elsewhere(end) } else { end() }
            }
            try await operation.performOperation(onEach: 0..<20) { _ in
                lock.withLock {}
                failed.change { $0 += 1 }
            }
            #expect(failed.value == 20)
        }
    }

    @Test("An item is in flight until its failure has been received", arguments: Strategy.allCases, [false, true])
    func failureThatLasts(strategy: Strategy, endsElsewhere: Bool) async throws {
        let (log, receiving, mayGoOn, isOver) = (WorkLog(), Gate(), Gate(), Gate())
        let operation = strategy.make(limit: 1) { items, completion in
            log.began(items)
            let error = items[0] == 0 ? TestError.first : nil
            if endsElsewhere { elsewhere { completion(error) } } else { completion(error) }
        }
        let task = Task {
            defer { isOver.open() }
            try await operation.performOperation(onEach: 0..<2) { _ in
                receiving.open()
                mayGoOn.pass()
            }
        }
        await receiving.opened()
        #expect(log.units.count == 1 && !isOver.isOpen)
        mayGoOn.open()
        try await task.value
        #expect(log.units.count == 2)
    }
}
