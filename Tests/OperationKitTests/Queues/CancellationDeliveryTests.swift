import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What a cancelled task calls. The runtime calls the handler of a cancellation with a lock of the task held that
/// resuming the task takes too, so nothing of the user's may run there.
@Suite("Cancelling a task that waits for its operation", .hangGuard) struct CancellationDeliveryTests {
    private struct Parallel: ParallelOperationCoordinator {}
    private struct Sequential: SequentialOperationCoordinator {}

    /// What runs an operation in a task.
    enum Runner: CaseIterable, Sendable {
        case queue, queueWithOutput, queueWithOtherClass, parallelCoordinator, sequentialCoordinator

        fileprivate func make(begun: Gate, stop: @escaping @Sendable () -> Void) -> Run {
            let queue = OperationQueue()
            switch self {
            case .queue:
                let work = Work(begun: begun, stop: stop)
                return Run(start: { try? await queue.run(work as AsyncOperation) }, finish: { work.finish(with: 1) })
            case .queueWithOutput:
                let work = Work(begun: begun, stop: stop)
                return Run(start: { _ = try? await queue.run(work) }, finish: { work.finish(with: 1) })
            case .queueWithOtherClass:
                let work = OtherWork(begun: begun, stop: stop)
                return Run(start: { try? await queue.run(work) }, finish: { work.finish() })
            case .parallelCoordinator:
                let work = Work(begun: begun, stop: stop)
                return Run(start: { _ = await Parallel().performOperations([work]) }, finish: { work.finish(with: 1) })
            case .sequentialCoordinator:
                let work = Work(begun: begun, stop: stop)
                return Run(
                    start: { _ = await Sequential().performOperations([work]) }, finish: { work.finish(with: 1) })
            }
        }
    }

    fileprivate struct Run {
        let start: @Sendable () async -> Void
        /// Ends the work, on any thread.
        let finish: @Sendable () -> Void
    }

    /// Work that goes on until it is finished.
    private final class Work: IOOperation<Void, Int>, @unchecked Sendable {
        private let begun: Gate
        private let stop: @Sendable () -> Void

        init(begun: Gate, stop: @escaping @Sendable () -> Void) {
            (self.begun, self.stop) = (begun, stop)
            super.init()
        }

        override func main(input: Void) { begun.open() }
        override func didCancel() { stop() }
    }

    /// The same as an operation of another library.
    private final class OtherWork: Operation, @unchecked Sendable {
        private let begun: Gate
        private let stop: @Sendable () -> Void
        private let finished = Shared(false)

        init(begun: Gate, stop: @escaping @Sendable () -> Void) {
            (self.begun, self.stop) = (begun, stop)
        }

        override var isAsynchronous: Bool { true }
        override var isFinished: Bool { finished.value }
        override func start() { begun.open() }

        override func cancel() {
            super.cancel()
            stop()
        }

        func finish() {
            willChangeValue(forKey: "isFinished")
            finished.value = true
            didChangeValue(forKey: "isFinished")
        }
    }

    @Test("A lock that the work takes to stop may be held by the thread that ends the work", arguments: Runner.allCases)
    func theEndOfTheWorkMayHoldALockThatStoppingTakes(runner: Runner) async {
        for _ in 0..<20 {
            let lock = NSLock()
            let (begun, isLocked, stopping, stopped) = (Gate(), Gate(), Gate(), Gate())
            let run = runner.make(begun: begun) {
                stopping.open()
                // The end has to come while the lock is held elsewhere.
                if lock.lock(before: Date(timeIntervalSinceNow: hangTimeout)) {
                    lock.unlock()
                } else {
                    Issue.record("The thread that ends the work waits for the task's cancellation.")
                }
                stopped.open()
            }
            let task = Task { await run.start() }
            await begun.opened()
            async let ended: Void = onThread {
                lock.withLock {
                    isLocked.open()
                    stopping.pass()
                    run.finish()
                }
            }
            await isLocked.opened()
            await onThread { task.cancel() }
            await ended
            await task.value
            await stopped.opened()
        }
    }

    @Test("Task.cancel() returns although the cancelled work does not") func cancelReturns() async {
        for runner in Runner.allCases {
            let (begun, stopping, mayStop) = (Gate(), Gate(), Gate())
            let run = runner.make(begun: begun) {
                stopping.open()
                mayStop.pass()
            }
            let task = Task { await run.start() }
            await begun.opened()
            await onThread { task.cancel() }
            await stopping.opened()
            mayStop.open()
            run.finish()
            await task.value
        }
    }

    private final class Items: ParallelItemOperation, AsyncItemOperation {
        let work: @Sendable () async -> Void

        init(_ work: @escaping @Sendable () async -> Void) {
            self.work = work
        }

        func performOperation(onItem item: Int) async throws { await work() }
    }

    @Test("Task.cancel() returns although the handler of a closure or of an item does not", arguments: [false, true])
    func handlersOfInnerTasksAreCalledLater(isCollection: Bool) async {
        let (begun, mayStop) = (Gate(), Gate())
        let work: @Sendable () async -> Void = {
            let stopped = Gate()
            await withTaskCancellationHandler {
                begun.open()
                await onThread { _ = stopped.pass() }
            } onCancel: {
                stopped.open()
                Self.wait(for: mayStop)
            }
        }
        let task = Task {
            if isCollection {
                _ = await Items(work).performOperation(on: [1, 2])
            } else {
                try? await OperationQueue().run(TaskOperation(work))
            }
        }
        await begun.opened()
        await onThread { task.cancel() }
        mayStop.open()
        await task.value
    }

    /// In a function of its own, because what stops a task is taken for asynchronous code.
    private static func wait(for gate: Gate) { gate.pass() }

    @Test("An operation whose task is cancelled from inside is cancelled before it ends", arguments: [false, true])
    func anOperationIsCancelledBeforeItEnds(isBlock: Bool) async {
        for throwsError in [false, true] {
            let wasCancelled = Shared(false)
            let body: @Sendable () async throws -> Int = {
                Self.cancelCurrentTask()
                if throwsError { try Task.checkCancellation() }
                return 1
            }
            let operation = isBlock ? IOTaskOperation(body) : TaskOperation(body)
            operation.asyncCompletionBlock = { [weak operation] _ in
                wasCancelled.value = operation?.isCancelled == true
            }
            operation.start()
            let output = try? await operation.value
            #expect(wasCancelled.value)
            #expect(output == (throwsError ? nil : 1))
        }
    }

    private static func cancelCurrentTask() {
        unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
    }

    #if DEBUG
    private final class Places: SchedulingProbe.Observer {
        private(set) var count = 0

        func reached(_ place: SchedulingProbe.Place) { count += 1 }
        func makeQueue() -> CompositeQueue { CompositeQueue() }
        func runWorker(_ work: @escaping @Sendable () -> Void) { DispatchQueue.global().async(execute: work) }
    }

    @Test("A task that is cancelled from inside does not touch its operation there", arguments: [false, true])
    func theOperationIsNotTouchedInsideTheCancellation(isBlock: Bool) async throws {
        let body: @Sendable () async throws -> Int = {
            let places = Places()
            SchedulingProbe.observed(by: places) { Self.cancelCurrentTask() }
            return places.count
        }
        let operation = isBlock ? IOTaskOperation(body) : TaskOperation(body)
        operation.start()
        #expect(try await operation.value == 0)
    }
    #endif
}
