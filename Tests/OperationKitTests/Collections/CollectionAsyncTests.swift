import OperationKitTestSupport

@testable import OperationKit

/// Asynchronous methods, in every form of a run: what they throw, and how they are cancelled.
@Suite("Collection operations with async", .serialized, .hangGuard) struct CollectionAsyncTests {
    /// Counts items that have begun, and opens a gate when so many have.
    private struct Arrivals: Sendable {
        let begun = Shared(0)
        let full = Gate()
        let count: Int

        func arrive() { if begun.increment() == count { full.open() } }
    }

    private static func texts(_ failures: [CollectionFailure<Int>]) -> [Int: String] {
        Dictionary(uniqueKeysWithValues: failures.map { ($0.index, text($0.error)) })
    }

    // MARK: - Failures

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
        "The first failure ends a run without an end, if the policy says so", arguments: Strategy.allCases,
        [Form.sequence, .asyncSequence])
    func endlessSequence(strategy: Strategy, form: Form) async throws {
        let operation = strategy.makeAsync(.cancelRemaining) { if $0 == 5 { throw TestError.first } }
        let failures = try await form.failures(of: operation, on: .max)
        #expect(failures.map { text($0.error) } == ["first"])
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

    @Test("A failure cancels items in flight while a sequence has not given the next one")
    func sequenceThatWaits() async throws {
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
    }

    // MARK: - Cancellation

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

    // MARK: - Completions

    @Test(
        "The completion of a run, an item or a batch is called outside of tasks, so it may block",
        arguments: Strategy.allCases)
    func completionOutsideOfTasks(strategy: Strategy) async {
        let operation = strategy.makeAsync { _ in await Task.yield() }
        for items in [[1], [1, 2, 3, 4]] {
            #expect(await Self.isCalledOutsideOfTasks { done in operation.performOperation(on: items) { _ in done() } })
        }
        let (item, batch) = (
            AsyncParallelItems(.continueAll) { _ in }, AsyncParallelBatches(.continueAll) { _ in throw TestError.first }
        )
        #expect(
            await Self.isCalledOutsideOfTasks { done in item.performOperation(onItem: 1) { if $0 == nil { done() } } })
        #expect(
            await Self.isCalledOutsideOfTasks { done in batch.performOperation(onBatch: [1]) { if $0 != nil { done() } }
            })
    }

    private static func isCalledOutsideOfTasks(_ body: (_ completion: @escaping @Sendable () -> Void) -> Void) async
        -> Bool
    {
        await withCheckedContinuation { continuation in
            body { continuation.resume(returning: unsafe withUnsafeCurrentTask { unsafe $0 == nil }) }
        }
    }

    // MARK: - Failures and their items

    @Test("`failures` pairs items with their errors: what to try again", arguments: Strategy.allCases)
    func failures(strategy: Strategy) async {
        let attempts = Shared<[Int: Int]>([:])
        let operation = strategy.make(batchSize: 2) { items, completion in
            let isFirst = attempts.change {
                $0[items[0], default: 0] += 1
                return $0[items[0]] == 1
            }
            completion(isFirst && items[0] % 4 == 0 ? TestError.numbered(items[0]) : nil)
        }
        let items = Array(0...8)
        let failures = operation.failures(in: items, errors: await operation.performOperation(on: items))
        let expected = strategy.isBatch ? [0, 1, 4, 5, 8] : [0, 4, 8]
        #expect(failures.map(\.item) == expected && failures.map(\.index) == expected)
        let retry = failures.map(\.item)
        #expect(operation.failures(in: retry, errors: await operation.performOperation(on: retry)).isEmpty)
    }

    @Test("A task that starts after the cancellation of its run is cancelled")
    func taskAfterTheCancellation() async {
        let tasks = InFlightTasks()
        tasks.cancel()
        let error = await withCheckedContinuation { continuation in
            tasks.run(0, { try await cancellation() }, completion: { continuation.resume(returning: $0) })
        }
        #expect(error is CancellationError)
    }

    @Test("With invalid options, every item has failed")
    func failuresOfInvalidOptions() async {
        let operation = SequentialBatches(1, 0, .continueAll) { _, _ in }
        let failures = operation.failures(in: [7, 8], errors: await operation.performOperation(on: [7, 8]))
        #expect(failures.map(\.item) == [7, 8] && failures.allSatisfy { $0.error is CoordinationError })
        #expect(operation.failures(in: [7, 8], errors: []).isEmpty)
        #expect(operation.clock is ContinuousClock)
    }
}
