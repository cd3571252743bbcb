import OperationKitTestSupport

@testable import OperationKit

@Suite("Collection operations with async", .serialized, .hangGuard) struct CollectionAsyncTests {
    private struct Arrivals: Sendable {
        let begun = Shared(0)
        let full = Gate()
        let count: Int

        func arrive() { if begun.increment() == count { full.open() } }
    }

    private static func texts(_ failures: [CollectionFailure<Int>]) -> [Int: String] {
        Dictionary(uniqueKeysWithValues: failures.map { ($0.index, text($0.error)) })
    }

    @Test("What a method throws is the outcome of its item or batch", arguments: Strategy.allCases, Form.allCases)
    func thrownErrors(strategy: Strategy, form: Form) async throws {
        for policy in [FailurePolicy.continueAll, .cancelRemaining] {
            let operation = strategy.makeAsync(policy) { item in
                await Task.yield()
                if item == 2 { throw TestError.second }
            }
            let failures = Self.texts(try await form.failures(of: operation, on: 3))
            #expect(failures == [2: "second"])
        }
    }

    @Test(
        "The first failure cancels items in flight if the policy says so, and what they make of that is their outcome",
        arguments: [Strategy.parallelItems, .parallelBatches], Form.allCases)
    func firstFailureCancelsItemsInFlight(strategy: Strategy, form: Form) async throws {
        let (arrivals, never) = (Arrivals(count: 3), Gate())
        let operation = strategy.makeAsync(.cancelRemaining) { item in
            arrivals.arrive()
            await (item == 1 ? arrivals.full : never).opened()
            if item == 1 { throw TestError.first }
            if item == 2 { throw TestError.second }
            try Task.checkCancellation()
        }
        var expected = [0: "cancelled", 1: "first", 2: "second"]
        if form.isArray { for index in 3..<10 { expected[index] = "cancelled" } }
        #expect(Self.texts(try await form.failures(of: operation, on: 10)) == expected && arrivals.begun.value == 3)
    }

    @Test(
        "A failure that the policy allows, or a cancellation, leaves items in flight alone", arguments: Form.allCases,
        [FailurePolicy.continueAll, .cancelRemaining])
    func itemsInFlightAreLeftAlone(form: Form, policy: FailurePolicy) async throws {
        let (last, wasCancelled) = (Gate(), Shared(false))
        let operation = AsyncParallelItems(policy) { item in
            switch item {
            case 0:
                await last.opened()
                wasCancelled.value = Task.isCancelled
            case 1: throw policy == .continueAll ? TestError.first : CancellationError()
            case 9: last.open()
            default: break
            }
        }
        let failures = Self.texts(try await form.failures(of: operation, on: 10))
        #expect(failures == [1: policy == .continueAll ? "first" : "cancelled"] && !wasCancelled.value)
    }

    @Test("A failure cancels items while a sequence has not given the next") func sequenceThatWaits() async throws {
        let (items, continuation) = AsyncStream.makeStream(of: Int.self)
        let (begun, cancelled, never) = (Shared(0), Gate(), Gate())
        let operation = AsyncParallelItems(.cancelRemaining) { item in
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
        #expect(try await task.value.map { text($0.error) } == ["cancelled", "first"] && begun.value == 2)
        #expect(operation.failures(in: [1], errors: []).isEmpty && operation.clock is ContinuousClock)
    }

    @Test(
        "Cancelling the task cancels the items in flight, and waits for them", arguments: Strategy.allCases,
        [Form.await, .sequence, .asyncSequence])
    func cancelledTask(strategy: Strategy, form: Form) async throws {
        let width = strategy.width(3)
        let (arrivals, cancelled, never) = (Arrivals(count: width), Arrivals(count: width), Gate())
        let (mayEnd, isOver, failed) = (Gate(), Gate(), EventLog())
        let operation = strategy.makeAsync(.cancelRemaining) { item in
            arrivals.arrive()
            await never.opened()
            cancelled.arrive()
            // Takes its time, although it is cancelled.
            await mayEnd.openedDespiteCancellation()
            failed.add("\(item) \(Task.isCancelled)")
            throw CancellationError()
        }
        let task = Task {
            defer { isOver.open() }
            return try await form.failures(of: operation, on: form.isArray ? 10 : .max)
        }
        await arrivals.full.opened()
        task.cancel()
        await cancelled.full.opened()
        #expect(!isOver.isOpen)
        mayEnd.open()
        if form.isArray {
            #expect(try await task.value.map { text($0.error) } == Array(repeating: "cancelled", count: 10))
        } else {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(failed.events.sorted() == (0..<width).map { "\($0) true" })
    }

    @Test("In a task that was cancelled before, no item is performed", arguments: Strategy.allCases)
    func cancelledBefore(strategy: Strategy) async throws {
        let own = OwnStrategy { _, _ in Issue.record("It is called.") }
        let managed = strategy.make { _, _ in Issue.record("It is performed.") }
        for operation in [managed, own] as [any CollectionOperation<Int> & Sendable] {
            let errors = try await inCancelledTask { await operation.performOperation(on: [1, 2]) }
            #expect(errors.map(text) == ["cancelled", "cancelled"])
        }
    }

    @Test("Completions are called, and failures reported, outside of tasks", arguments: Strategy.allCases)
    func completionOutsideOfTasks(strategy: Strategy) async {
        let operation = strategy.makeAsync { _ in await Task.yield() }
        let failing = strategy.makeAsync { _ in throw TestError.first }
        let batch = AsyncParallelBatches(.continueAll) { _ in throw TestError.first }
        let calls: [(_ completion: @escaping @Sendable () -> Void) -> Void] = [
            { done in Task { try await failing.performOperation(onEach: [1]) { _ in done() } } },
            { done in operation.performOperation(on: [1]) { _ in done() } },
            { done in operation.performOperation(on: [1, 2, 3, 4]) { _ in done() } },
            { done in AsyncParallelItems(.continueAll) { _ in }.performOperation(onItem: 1) { if $0 == nil { done() } }
            },
            { done in batch.performOperation(onBatch: [1]) { if $0 != nil { done() } } },
        ]
        for call in calls {
            let isOutside = await withCheckedContinuation { continuation in
                call { continuation.resume(returning: unsafe withUnsafeCurrentTask { unsafe $0 == nil }) }
            }
            #expect(isOutside)
        }
    }

    @Test("A task that starts after the cancellation of its run is cancelled") func taskAfterTheCancellation() async {
        let tasks = InFlightTasks()
        tasks.cancel()
        let error = await withCheckedContinuation { continuation in
            tasks.run(0, { try await cancellation() }, completion: { continuation.resume(returning: $0) })
        }
        #expect(error is CancellationError)
    }

    @TaskLocal static var local = 0

    @Test("A sequence is read outside of tasks, or in the caller's if the method is async") func task() async throws {
        let seen = EventLog()
        let sequence = Reads { index in
            seen.add("\(Self.local) \(unsafe withUnsafeCurrentTask { unsafe $0 == nil })")
            return index == 0 ? 0 : nil
        }
        try await Self.$local.withValue(1) {
            for strategy in Strategy.allCases {
                _ = try await strategy.make { _, completion in completion(nil) }.performOperation(onEach: sequence)
            }
            _ = try await Strategy.sequentialItems.makeAsync { _ in }.performOperation(onEach: sequence)
        }
        #expect(seen.events == Array(repeating: "0 true", count: 8) + ["1 false", "1 false"])
    }

    @Test(
        "The error of the sequence is thrown after what was read before has ended, also if that fails and stops the run",
        arguments: Strategy.allCases.map { ($0, 5) } + [(.parallelBatches, 1), (.sequentialBatches, 1)])
    func errorOfTheSequence(strategy: Strategy, count: Int) async {
        let (log, ends, failed) = (WorkLog(), Shared(0), Shared<[Int]>([]))
        let policy: FailurePolicy = count == 1 ? .cancelRemaining : .continueAll
        let operation = strategy.make(batchSize: 3, policy: policy) { items, completion in
            log.began(items)
            elsewhere {
                log.ended()
                completion(TestError.numbered(items[0]))
            }
        }
        let reads = Reads { index in
            if index < count { return index }
            ends.change { $0 += 1 }
            return nil
        }
        await #expect(throws: TestError.reason) {
            try await operation.performOperation(onEach: AsyncReads(sequence: reads, failure: .reason)) { failure in
                failed.change { $0.append(failure.item) }
            }
        }
        #expect(ends.value == 1 && log.inFlight == 0 && failed.value.sorted() == Array(0..<count))
        #expect(log.units.sorted { $0[0] < $1[0] } == strategy.units(count, batchSize: 3))
    }

    @Test("After a failure the batch that is being read gets no further item") func failureWhileReading() async throws {
        let (log, reported, mayFail, count) = (EventLog(), Gate(), Gate(), Shared(0))
        let batches = AsyncParallelBatches(.cancelRemaining, batchSize: 2) { _ in
            await mayFail.opened()
            throw TestError.first
        }
        let sequence = AsyncStream<Int> {
            let number = count.increment()
            log.add("\(number)")
            if number == 3 {
                mayFail.open()
                await reported.opened()
            }
            return number
        }
        try await batches.performOperation(onEach: sequence) { _ in reported.open() }
        #expect(log.events == ["1", "2", "3"])
    }

    @Test("Async batches and types with a strategy of their own take sequences, too") func otherTypes() async throws {
        let batches = AsyncSequentialBatches(.continueAll, batchSize: 3) { if $0 == 3 { throw TestError.first } }
        #expect(try await batches.performOperation(onEach: 0..<7).map(\.item) == [3, 4, 5])
        let own = OwnStrategy { items, completion in completion(items.map { $0 == 1 ? TestError.first : nil }) }
        #expect(try await own.performOperation(onEach: 0..<3).map(\.item) == [1])
    }
}
