import OperationKitTestSupport

@testable import OperationKit

@Suite("Waits of limited time", .hangGuard) struct BoundedWaitTests {
    private let clock = ManualClock()

    @Test("A wait for an operation that ends in time says so, and leaves no deadline behind") func inTime() async throws
    {
        let operation = ScriptedOperation.idle()
        operation.start()
        async let isFinished = operation.finished(within: .seconds(5), clock: clock)
        await clock.sleepers()
        operation.finish()
        #expect(try await isFinished)
        await clock.expectNoSleepers()
    }

    @Test("A wait that takes too long ends, and leaves the operation alone") func tooLong() async throws {
        let operation = ScriptedOperation.idle()
        operation.clock = clock
        operation.start()
        async let isFinished = operation.finished(within: .seconds(5))
        await clock.pass(.seconds(5))
        #expect(try await !isFinished)
        #expect(operation.isExecuting && !operation.isCancelled)
        #expect(!operation.isAwaited)
        operation.finish()
    }

    @Test("A wait for a finished operation returns immediately, and throws its error") func finished() async throws {
        let (succeeded, failed) = (ScriptedOperation(), ScriptedOperation { $0.finish(withError: TestError.first) })
        for operation in [succeeded, failed] { operation.start() }
        #expect(try await succeeded.finished(within: .zero, clock: clock))
        await #expect(throws: TestError.first) { try await failed.finished(within: .seconds(1), clock: clock) }
        #expect(clock.deadlines.isEmpty)
    }

    @Test("Cancelling the waiting task ends the wait, and leaves the operation alone") func cancelled() async {
        let operation = ScriptedOperation.idle()
        let clock = clock
        let task = Task { try await operation.finished(within: .seconds(5), clock: clock) }
        await operation.becomesAwaited()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!operation.isAwaited && !operation.isCancelled)
        await clock.expectNoSleepers()
    }

    @Test("A wait of no time returns without waiting", arguments: [0, -1]) func noTime(seconds: Int) async throws {
        #expect(try await !ScriptedOperation.idle().finished(within: .seconds(seconds), clock: clock))
    }
}
