import OperationKitTestSupport

/// Operations whose work is a closure.
@Suite("Closures as operations", .hangGuard) struct TaskOperationTests {
    enum Kind: CaseIterable {
        case synchronous, task, withInput

        func make(_ body: @escaping @Sendable () throws -> Int) -> IOOperation<Void, Int> {
            switch self {
            case .synchronous: IOBlockOperation(name: "answer") { try body() }
            case .task: TaskOperation(name: "answer") { try body() }
            case .withInput:
                IOTaskOperation(name: "answer") { (_: Void) in
                    await Task.yield()
                    return try body()
                }
            }
        }
    }

    @Test("The outcome is what the closure returns or throws", arguments: Kind.allCases, Start.allCases)
    func outcome(kind: Kind, start: Start) async throws {
        for error in [nil, TestError.first, CancellationError()] as [(any Error)?] {
            let operation = kind.make { if let error { throw error } else { 42 } }
            await start(operation)
            #expect(operation.name == "answer" && operation.output == (error == nil ? 42 : nil))
            #expect(text(operation.error) == text(error) && !operation.isCancelled)
            let value = await Task { try await operation.value }.result
            #expect(text(value.failure) == text(error))
        }
    }

    @Test(
        "The closure of an operation that is cancelled before its start does not run, and is released",
        arguments: Kind.allCases, Start.allCases)
    func cancelledBeforeTheStart(kind: Kind, start: Start) async {
        let (log, tracker) = (EventLog(), LeakTracker())
        func holding() -> IOOperation<Void, Int> {
            let token = tracker.token("closure")
            return kind.make {
                log.add("\(token.use())")
                return 1
            }
        }
        let operation = holding()
        await start(operation) { operation.cancel() }
        #expect(operation.error is CancellationError && log.events.isEmpty)
        await tracker.expectAllReleased()
    }

    @Test(
        "The reason takes the place of the `CancellationError` of a closure, whose output stands if it ignores the cancellation",
        arguments: [false, true])
    func cancelled(isIgnored: Bool) async throws {
        let (begun, never) = (Gate(), Gate())
        let operation = TaskOperation {
            begun.open()
            await never.opened()
            if !isIgnored { try Task.checkCancellation() }
            return 1
        }
        operation.start()
        await begun.opened()
        operation.cancel(withError: TestError.reason)
        try? await operation.finished()
        #expect(operation.isCancelled && operation.output == (isIgnored ? 1 : nil))
        #expect(text(operation.error) == (isIgnored ? "success" : "reason"))
    }

    @Test(
        "The priority of the task follows the quality of service at the start",
        arguments: [
            (QualityOfService.userInteractive, TaskPriority.high), (.userInitiated, .userInitiated),
            (.default, .medium), (.utility, .utility), (.background, .background),
        ])
    func priority(
        quality: QualityOfService, priority: TaskPriority
    ) async throws {
        let operation = TaskOperation { Task.currentPriority }
        operation.qualityOfService = quality
        // Read without awaiting: a caller that waits for a task lends it a higher priority.
        await onThread {
            operation.start()
            operation.waitUntilFinished()
        }
        #expect(operation.output == priority)
    }
}
