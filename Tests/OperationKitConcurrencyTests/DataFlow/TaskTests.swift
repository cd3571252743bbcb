import OperationKitTestSupport

@testable import OperationKit

/// What becomes of the closure and the task of an operation when the operation ends.
@Suite("The end of a task operation", .hangGuard) struct TaskEndTests {
    enum Kind: CaseIterable {
        case task, closure

        func make(_ body: @escaping @Sendable () async throws -> Int) -> IOOperation<Void, Int> {
            switch self {
            case .task: TaskOperation(body)
            case .closure: IOTaskOperation { (_: Void) in try await body() }
            }
        }
    }

    @Test(
        "When the operation reads as finished, its closure has been released, and nothing is called in a cancelled task",
        arguments: [Kind.task, .closure, nil], [false, true])
    func theClosureIsReleasedFirst(kind: Kind?, fails: Bool) async {
        let (tracker, log) = (LeakTracker(), EventLog())
        let operation: IOOperation<Void, Int>
        do {
            let token = tracker.token("closure")
            let body: @Sendable () throws -> Int = {
                token.use()
                if fails { throw TestError.first }
                return 1
            }
            operation =
                kind?.make {
                    await Task.yield()
                    return try body()
                } ?? IOBlockOperation { (_: Void) in try body() }
        }
        FinishObserver(operation) { log.add("\(tracker.alive), \(Task.isCancelled)") }
        await Start.byHand(operation)
        await eventually("nothing is told") { !log.events.isEmpty }
        #expect(log.events == ["[], false"])
    }

    @Test("An outcome that other code gives cancels the task", arguments: Kind.allCases)
    func outcomeFromOutside(kind: Kind) async throws {
        let (begun, cancelled) = (Gate(), Gate())
        let operation = kind.make {
            begun.open()
            do { try await cancellation() } catch { cancelled.open() }
            return 1
        }
        operation.start()
        await begun.opened()
        #expect(operation.finish(with: 2))
        await cancelled.opened()
        #expect(try await operation.value == 2)
        #expect(!operation.isCancelled)
    }

    @Test("A task that is cancelled from inside cancels the operation before that ends", arguments: Kind.allCases)
    func cancelledFromInside(kind: Kind) async throws {
        for round in 0..<200 {
            let wasCancelled = Shared(false)
            let operation = kind.make {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                if round % 2 == 0 { try Task.checkCancellation() }
                return 1
            }
            operation.asyncCompletionBlock = { [unowned operation] _ in wasCancelled.value = operation.isCancelled }
            operation.start()
            let output = try? await operation.value
            #expect(wasCancelled.value && output == (round % 2 == 0 ? nil : 1))
        }
    }

    #if DEBUG
    @Test("No completion block is called inside the cancellation of a task", arguments: Kind.allCases)
    func insideTheCancellation(kind: Kind) async {
        for place in 0..<Interruption.bound {
            let holder = Shared<IOOperation<Void, Int>?>(nil)
            let cancelling = Shared<Thread?>(nil)
            let (log, isReached, returns) = (EventLog(), Shared(false), Gate())
            let operation = kind.make {
                defer { returns.open() }
                isReached.value = cancelCurrentTask(interruptedAt: place, thread: cancelling) {
                    holder.value?.finish(with: 2)
                }
                return 1
            }
            operation.asyncCompletionBlock = { _ in
                if cancelling.value === Thread.current { log.add("inside") }
            }
            holder.value = operation
            await Start.byHand(operation)
            // The closure goes on when the operation has ended.
            await returns.opened()
            holder.value = nil
            #expect(log.events.isEmpty, "place \(place)")
            if !isReached.value { break }
        }
    }
    #endif
}

#if DEBUG
/// Cancels the task that this is called in, whose handlers are called on this thread. Another thread does something at
/// the place with a certain number. Returns whether there was such a place. Meanwhile `thread` is the current one.
private func cancelCurrentTask(
    interruptedAt place: Int, thread: Shared<Thread?>, _ action: @escaping @Sendable () -> Void
) -> Bool {
    thread.value = Thread.current
    defer { thread.value = nil }
    let interruption = Interruption(at: place) { #expect(answersOnAnotherThread(action)) }
    SchedulingProbe.observed(by: interruption) { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
    return interruption.hasRun
}
#endif

/// In every closure that is `async`, `Task.isCancelled` is the operation's.
@Suite("Cancellation seen by tasks", .hangGuard) struct TaskCancellationTests {
    enum Kind: CaseIterable {
        case task, block, map, asyncItem, asyncBatch

        func make(_ body: @escaping @Sendable () async -> Void) -> AsyncOperation {
            switch self {
            case .task:
                return TaskOperation(body)
            case .block:
                return IOTaskOperation<Void, Void> { await body() }
            case .map:
                let operation = MapOperation<Int, Void> { _ in await body() }
                operation.input = [1]
                return operation
            case .asyncItem:
                return Strategy.parallelItems.makeAsync { _ in await body() }.makeOperation(on: [1])
            case .asyncBatch:
                return Strategy.sequentialBatches.makeAsync { _ in await body() }.makeOperation(on: [1])
            }
        }
    }

    @Test(
        "When cancel() has returned, the task is cancelled, and the output of an operation stands nevertheless",
        arguments: Kind.allCases)
    func cancelledWhileRunning(kind: Kind) async {
        let (begun, cancelled) = (Gate(), Gate())
        let seen = Shared<[Bool]>([])
        let operation = kind.make {
            seen.change { $0.append(Task.isCancelled) }
            begun.open()
            await cancelled.openedDespiteCancellation()
            seen.change { $0.append(Task.isCancelled) }
        }
        operation.start()
        await begun.opened()
        operation.cancel()
        cancelled.open()
        _ = try? await operation.finished()
        #expect(seen.value == [false, true] && (operation.error == nil || operation is CollectionRun<Int>))
    }

    @Test("Cancelled between its start and its work, the closure is not called", arguments: [Kind.task, .block])
    func cancelledBeforeTheWork(kind: Kind) async {
        let isCalled = Shared(false)
        let operation = kind.make { isCalled.value = true }
        operation.addStartHandler { $0.cancel() }
        operation.start()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(!isCalled.value)
    }

    #if DEBUG
    @Test(
        "Cancelled while it starts, the closure finds its task cancelled when cancel() has returned",
        arguments: [Kind.task, .block])
    func cancelledWhileStarting(kind: Kind) async {
        for place in 0..<Interruption.bound {
            let (hasReturned, isUnseen) = (Shared(false), Shared(false))
            let operation = kind.make { if hasReturned.value, !Task.isCancelled { isUnseen.value = true } }
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    operation.cancel()
                    hasReturned.value = true
                }
                SchedulingProbe.observed(by: interruption) { operation.start() }
                return interruption.hasRun
            }
            _ = try? await operation.finished()
            #expect(!isUnseen.value, "place \(place)")
            if !isReached { return }
        }
    }
    #endif
}
