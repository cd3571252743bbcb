import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Where an operation goes on after something that took time between `start()` and `main()`.
@Suite("Preparations on dispatch queues", .hangGuard) struct PreparationQueueTests {
    private let log = EventLog()

    /// Whether the calling code runs on a dispatch queue that was marked.
    private static let key = DispatchSpecificKey<Bool>()

    /// An operation that fails unless its `main()` is called on a marked queue, or on no such queue.
    private func expecting(marked isMarked: Bool, _ preparation: HeldPreparation) -> ScriptedOperation {
        let operation = ScriptedOperation { operation in
            let wasMarked = DispatchQueue.getSpecific(key: PreparationQueueTests.key) == true
            operation.finish(withError: wasMarked == isMarked ? nil : TestError.first)
        }
        operation.addPreparation(preparation)
        return operation
    }

    @Test("An operation goes on where the operation queue runs its operations that it is on")
    func dispatchQueue() async throws {
        let (queue, _) = markedQueue()
        let preparation = HeldPreparation()
        let operation = expecting(marked: true, preparation)
        queue.addOperation(operation)
        await eventually("not begun") { operation.withState { $0.lifecycle.isWaiting } }
        preparation.end()
        try await operation.finished()
    }

    @Test("An operation on the main queue goes on there") func mainQueue() async throws {
        DispatchQueue.main.setSpecific(key: PreparationQueueTests.key, value: true)
        let preparation = HeldPreparation()
        let operation = expecting(marked: true, preparation)
        OperationQueue.main.addOperation(operation)
        await eventually("not begun") { operation.withState { $0.lifecycle.isWaiting } }
        preparation.end()
        try await operation.finished()
    }

    @Test("An operation that the main thread starts by hand goes on elsewhere, so that the thread may wait for it")
    func startedOnTheMainThread() async throws {
        DispatchQueue.main.setSpecific(key: PreparationQueueTests.key, value: true)
        let preparation = HeldPreparation()
        let operation = expecting(marked: false, preparation)
        OperationQueue.main.addOperation {
            operation.start()
            preparation.end()
            operation.waitUntilFinished()
        }
        try await operation.finished()
    }

    @Test("An operation that code on a queue starts by hand goes on elsewhere, so that the code may wait for it")
    func startedOnAQueueByHand() async throws {
        let (queue, _) = markedQueue()
        let preparation = HeldPreparation()
        let operation = expecting(marked: false, preparation)
        queue.addOperation {
            operation.start()
            preparation.end()
            operation.waitUntilFinished()
        }
        try await operation.finished()
    }

    @Test("An operation with several preparations that take time goes on where its queue runs its operations")
    func severalOnADispatchQueue() async throws {
        let (queue, _) = markedQueue()
        let preparations = (0..<3).map { _ in HeldPreparation() }
        let operation = expecting(marked: true, preparations[0])
        for preparation in preparations.dropFirst() { operation.addPreparation(preparation) }
        queue.addOperation(operation)
        for preparation in preparations {
            await eventually("not begun") { preparation.isBegun && operation.withState { $0.lifecycle.isWaiting } }
            preparation.end()
        }
        try await operation.finished()
    }

    @Test("A child goes on elsewhere than what another child adds to the queue of their compound") func childOfGuests()
        async throws
    {
        let (_, underlying) = markedQueue()
        let preparation = HeldPreparation()
        let first = ScriptedOperation { operation in
            unsafe OperationQueue.current?.underlyingQueue = underlying
            operation.finish()
        }
        let second = expecting(marked: false, preparation)
        second.addDependency(first)
        let compound = CompoundOperation(operations: [first, second])
        compound.start()
        await eventually("not begun") { second.withState { $0.lifecycle.isWaiting } }
        preparation.end()
        try await compound.finished()
    }

    @Test("The operations on a queue are looked at a single time, and not once for each of them") func askedOnce()
        async throws
    {
        let (queue, underlying) = markedQueue()
        queue.isSuspended = true
        let release = Gate()
        let operations = (0..<100).map { _ in ScriptedOperation() }
        operations[0].addPreparation(HeldPreparation())
        operations[1].addStartHandler { _ in release.pass() }
        for operation in operations[2...] { operation.addPreparation(HeldPreparation()) }
        for operation in operations { queue.addOperation(operation) }
        queue.isSuspended = false
        await eventually("not begun") { operations[0].withState { $0.lifecycle.isWaiting } }
        // It has not started, and was told by the first one.
        #expect(operations[99].withState { $0.preparations?.queue } === underlying)
        release.open()
        queue.cancelAllOperations()
        for operation in operations { try? await operation.finished() }
    }

    @Test("Between the end of its wait and its turn on a busy dispatch queue an operation ends immediately")
    func endedBeforeItsTurn() async throws {
        let (queue, underlying) = markedQueue()
        for isCancelled in [true, false] {
            let preparation = HeldPreparation("prepare", log)
            let operation = ScriptedOperation.logged(log)
            operation.name = "work"
            operation.addPreparation(preparation)
            queue.addOperation(operation)
            await eventually("not begun") { operation.withState { $0.lifecycle.isWaiting } }
            let (busy, release) = (Gate(), Gate())
            underlying.async {
                busy.open()
                release.pass()
            }
            await busy.opened()
            preparation.end()
            #expect(operation.debugDescription.hasPrefix("“work”: waiting for its dispatch queue"))
            if isCancelled { operation.cancel() } else { operation.finish(withError: TestError.first) }
            #expect(operation.isFinished)
            release.open()
            await onDispatchQueue(underlying)
        }
        #expect(
            log.events == [
                "prepare", "asyncCompletionBlock cancelled", "prepare", "asyncCompletionBlock first",
            ])
    }

    /// An operation queue with a serial dispatch queue that is marked.
    private func markedQueue() -> (OperationQueue, DispatchQueue) {
        let underlying = DispatchQueue(label: "underlying")
        underlying.setSpecific(key: PreparationQueueTests.key, value: true)
        let queue = OperationQueue()
        unsafe queue.underlyingQueue = underlying
        return (queue, underlying)
    }

    /// Suspends until a serial dispatch queue has done everything that it was given before.
    private func onDispatchQueue(_ queue: DispatchQueue) async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
