import OperationKitTestSupport

@testable import OperationKit

/// What a cancelled task calls. The runtime calls the handler of a cancellation with a lock of the task held that
/// resuming the task takes too, so nothing of the user's may run there.
@Suite("Cancelling a task that waits for its operation", .hangGuard) struct CancellationDeliveryTests {
    private struct Parallel: ParallelOperationCoordinator {}

    /// What starts work that goes on until it is finished, and what finishes it, on any thread.
    private typealias Run = (start: @Sendable () async -> Void, finish: @Sendable () -> Void)

    private static let runners: [@Sendable (_ begun: Gate, _ stop: @escaping @Sendable () -> Void) -> Run] = [
        { begun, stop in
            let work = ScriptedOperation(main: { _ in begun.open() }, didCancel: { _ in stop() })
            return ({ try? await OperationQueue().run(work) }, { work.finish() })
        },
        { begun, stop in
            let work = ForeignOperation(didCancel: stop) { _ in begun.open() }
            return ({ try? await OperationQueue().run(work) }, { work.finish() })
        },
        { begun, stop in
            let work = ScriptedOperation(main: { _ in begun.open() }, didCancel: { _ in stop() })
            return ({ _ = await Parallel().performOperations([work]) }, { work.finish() })
        },
    ]

    @Test("A lock that the work takes to stop may be held by the thread that ends the work", arguments: runners.indices)
    func theEndOfTheWorkMayHoldALockThatStoppingTakes(index: Int) async {
        for _ in 0..<3 {
            let (lock, begun, isLocked, stopping, stopped) = (NSLock(), Gate(), Gate(), Gate(), Gate())
            let run = Self.runners[index](begun) {
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
