import OperationKitTestSupport

@testable import OperationKit

/// How a run over a sequence ends whose items have a completion: cancelled, after a failure, and what it leaves behind. They block dispatch threads, so one at a time.
@Suite("Ends of runs over sequences", .serialized, .hangGuard) struct SequenceEndTests {
    private typealias Failures = [CollectionFailure<Int>]

    // MARK: - Cancellation

    @Test("In a task that was cancelled before, no item is taken", arguments: Strategy.allCases)
    func cancelledBefore(strategy: Strategy) async {
        let taken = Shared(0)
        let operation = strategy.make { _, completion in completion(nil) }
        await #expect(throws: CancellationError.self) {
            try await inCancelledTask { try await operation.performOperation(onEach: Reads { _ in taken.increment() }) }
        }
        #expect(taken.value == 0)
    }

    /// A run that is cancelled by what is inside it.
    private func run(
        _ operation: some CollectionOperation<Int> & Sendable, _ sequence: @escaping @Sendable (Int) -> Int?
    ) -> (task: Task<Failures, any Error>, begin: Gate) {
        let begin = Gate()
        let task = Task {
            await begin.opened()
            return try await operation.performOperation(onEach: Reads(sequence))
        }
        return (task, begin)
    }

    @Test(
        "A sequence that cancels the task gives no further item, and the one it gives is not performed",
        arguments: Strategy.allCases, [false, true])
    func cancelledWhileReading(strategy: Strategy, isAtEnd: Bool) async {
        let (log, taken, cancel) = (WorkLog(), Shared(0), Shared<(@Sendable () -> Void)?>(nil))
        let operation = strategy.make { items, completion in
            log.began(items)
            elsewhere { completion(nil) }
        }
        let (task, begin) = run(operation) { index in
            taken.change { $0 += 1 }
            if index == 10 { cancel.value?() }
            return isAtEnd && index == 10 ? nil : index
        }
        cancel.value = { task.cancel() }
        begin.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(taken.value == 11 && log.units.count == 10)
    }

    #if DEBUG
    @Test(
        "A run that is cancelled ends as cancelled, wherever the thread that cancels it is held up",
        arguments: Strategy.allCases.filter(\.isParallel))
    func cancellationHeldUp(strategy: Strategy) async {
        for place in 0..<Interruption.bound {
            let (taken, isOver) = (Shared(0), Shared(false))
            let (task, begin) = run(strategy.make { _, completion in completion(nil) }) { index in
                taken.change { $0 += 1 }
                return index
            }
            let end = Task {
                defer { isOver.value = true }
                return try await task.value
            }
            begin.open()
            await eventually("nothing is taken") { taken.value > 0 }
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    // Others go on, until they have taken some items more, or the run is over, unless this thread ends it.
                    let (count, deadline) = (taken.value, Date(timeIntervalSinceNow: 0.1))
                    while taken.value < count + 10, !isOver.value, Date.now < deadline { sched_yield() }
                }
                SchedulingProbe.observed(by: interruption) { task.cancel() }
                return interruption.hasRun
            }
            await #expect(throws: CancellationError.self) { try await end.value }
            if !isReached { return }
        }
    }

    /// Keeps what is left to workers, so that the test runs it.
    private final class HeldWorkers: SchedulingProbe.Observer {
        private var held: [@Sendable () -> Void] = []

        func reached(_ place: SchedulingProbe.Place) {}
        func runWorker(_ work: @escaping @Sendable () -> Void) { held.append(work) }

        /// Runs what the worker does that was requested first.
        func runFirst() { held.removeFirst()() }
    }

    @Test(
        "A run that is cancelled after the end of the sequence was reached is not cancelled", arguments: [false, true])
    func cancelledAfterTheEnd(isReached: Bool) async throws {
        let log = WorkLog()
        let operation = ParallelItems(2, 1, .continueAll) { _, completion in log.keep(completion) }
        let strategy = try CollectionStrategy(of: operation)
        guard case .completion(let perform) = strategy.method else {
            Issue.record("The method has no completion.")
            return
        }
        let workers = HeldWorkers()
        SchedulingProbe.observed(by: workers) {
            let source = SequenceSource(
                Reads { $0 == 0 ? 0 : nil }, batchSize: 1, perform: perform, failed: { _ in })
            let work = CollectionWork(source: source, names: strategy.names, limit: 2, failurePolicy: .continueAll)
            let (driver, ends) = (CollectionDriver(work), Shared<[Bool]>([]))
            driver.start { _, isCancelled in ends.change { $0.append(isCancelled) } }
            workers.runFirst()
            // The first worker has ended with the item in flight, and the second one is to read on.
            if isReached { workers.runFirst() }
            driver.cancelSoon()
            if !isReached { workers.runFirst() }
            #expect(ends.value.isEmpty)
            for completion in log.takeKept() { completion(nil) }
            #expect(ends.value == [!isReached])
        }
    }
    #endif

    // MARK: - Failures

    /// The first unit fails while the sequence is asked for an item of the second one, which it gives after that.
    @Test(
        "After a failure that ends the run, an item that is being read is not performed, and its batch is read no further",
        arguments: [(Strategy.parallelItems, 1), (.parallelBatches, 1), (.parallelBatches, 3)])
    func failureWhileReading(strategy: Strategy, batchSize: Int) async throws {
        let (log, failed, reading, mayGive, reads) = (WorkLog(), Gate(), Gate(), Gate(), Shared(0))
        let operation = strategy.make(limit: 2, batchSize: batchSize, policy: .cancelRemaining) { items, completion in
            log.began(items)
            log.keep(completion)
        }
        let task = Task {
            let sequence = Reads { index in
                reads.value = index + 1
                if index == batchSize {
                    reading.open()
                    mayGive.pass()
                }
                return index
            }
            try await operation.performOperation(onEach: sequence) { _ in failed.open() }
        }
        await reading.opened()
        await eventually("not begun") { log.keptCount == 1 }
        for completion in log.takeKept() { completion(TestError.first) }
        await failed.opened()
        mayGive.open()
        try await task.value
        #expect(log.units.count == 1 && reads.value == batchSize + 1)
    }

    @Test("A failure that ends the run takes the place of a cancellation", arguments: Strategy.allCases)
    func failureAfterACancellation(strategy: Strategy) async throws {
        for policy in [FailurePolicy.continueAll, .cancelRemaining] {
            let (log, kept) = (WorkLog(), Gate())
            let operation = strategy.make(limit: 1, policy: policy) { items, completion in
                log.keep(completion)
                kept.open()
            }
            let task = Task { try await operation.performOperation(onEach: 0...) }
            await kept.opened()
            task.cancel()
            for completion in log.takeKept() { completion(TestError.first) }
            if policy == .continueAll {
                await #expect(throws: CancellationError.self) { try await task.value }
            } else {
                #expect(try await task.value.map { text($0.error) } == ["first"])
            }
        }
    }

    // MARK: - What is left behind

    private final class Performer: ParallelItemOperation, Sendable {
        let maxConcurrentOperationCount = 2
        let kept = Shared<[@Sendable ((any Error)?) -> Void]>([])
        let isSynchronous: Bool

        init(isSynchronous: Bool) { self.isSynchronous = isSynchronous }

        func performOperation(onItem item: LeakTracker.Token, completion: @escaping ItemCompletion) {
            kept.change { $0.append(completion) }
            let error = kept.value.count % 2 == 0 ? TestError.first : nil
            if isSynchronous { completion(error) } else { elsewhere { completion(error) } }
        }
    }

    @Test("When a run returns, it holds nothing, although completions are kept", arguments: [false, true])
    func releases(isSynchronous: Bool) async throws {
        for _ in 0..<TestExtent.choose(20, long: 200) {
            let leaks = LeakTracker()
            let kept = try await keptCompletions(leaks, isSynchronous: isSynchronous)
            #expect(kept.count == 20)
            try #require(leaks.alive.isEmpty)
            withExtendedLifetime(kept) {}
        }
    }

    /// Performs items that keep their completions.
    private func keptCompletions(
        _ leaks: LeakTracker, isSynchronous: Bool
    ) async throws -> [@Sendable ((any Error)?) -> Void] {
        let operation = leaks.track(Performer(isSynchronous: isSynchronous), "performer")
        let (inIterator, inFailed) = (leaks.token("iterator"), leaks.token("failed"))
        var count = 0
        let sequence = AnyIterator {
            inIterator.use()
            count += 1
            return count <= 20 ? leaks.token("item") : nil
        }
        try await operation.performOperation(onEach: sequence) { _ in inFailed.use() }
        return operation.kept.change { exchange(&$0, with: []) }
    }
}
