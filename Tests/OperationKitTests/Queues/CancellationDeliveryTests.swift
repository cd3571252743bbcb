import OperationKitTestSupport

@testable import OperationKit

/// What a cancelled task calls. The runtime calls the handler of a cancellation with a lock of the task held that
/// resuming the task takes too, so nothing of the user's may run there.
@Suite("Cancelling a task that waits for its operation", .hangGuard) struct CancellationDeliveryTests {
    private struct Parallel: ParallelOperationCoordinator {}
    private struct Sequential: SequentialOperationCoordinator {}

    enum Runner: CaseIterable, Sendable {
        case queue, queueWithOtherClass, parallelCoordinator, sequentialCoordinator

        /// Returns what starts work that goes on until it is finished, and what finishes it, on any thread.
        func make(
            begun: Gate, stop: @escaping @Sendable () -> Void
        ) -> (start: @Sendable () async -> Void, finish: @Sendable () -> Void) {
            let queue = OperationQueue()
            let (work, other) = (
                ScriptedOperation(main: { _ in begun.open() }, didCancel: { _ in stop() }),
                ForeignOperation(didCancel: stop) { _ in begun.open() }
            )
            return switch self {
            case .queue: ({ try? await queue.run(work) }, { work.finish() })
            case .queueWithOtherClass: ({ try? await queue.run(other) }, { other.finish() })
            case .parallelCoordinator: ({ _ = await Parallel().performOperations([work]) }, { work.finish() })
            case .sequentialCoordinator: ({ _ = await Sequential().performOperations([work]) }, { work.finish() })
            }
        }
    }

    @Test("A lock that the work takes to stop may be held by the thread that ends the work", arguments: Runner.allCases)
    func theEndOfTheWorkMayHoldALockThatStoppingTakes(runner: Runner) async {
        for _ in 0..<3 {
            let (lock, begun, isLocked, stopping, stopped) = (NSLock(), Gate(), Gate(), Gate(), Gate())
            let run = runner.make(begun: begun) {
                stopping.open()
                // The end has to come while the lock is held elsewhere.
                let isFree = lock.lock(before: Date(timeIntervalSinceNow: hangTimeout))
                #expect(isFree, "The thread that ends the work waits for the task's cancellation.")
                if isFree { lock.unlock() }
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
                _ = await Strategy.parallelItems.makeAsync { _ in await work() }.performOperation(on: [1, 2])
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
}
