import OperationKitTestSupport

@testable import OperationKit

/// A block operation whose `finish` can never be called ends with an error.
@Suite("Lost finish", .hangGuard) struct LostFinishTests {
    /// Block operations of both kinds, whose closure does something with its `finish`.
    enum Kind: CaseIterable {
        case block, typed

        func make(
            _ name: String? = nil, _ body: @escaping @Sendable (_ finish: @escaping @Sendable () -> Void) -> Void
        ) -> AsyncOperation {
            switch self {
            case .block:
                return AsyncBlockOperation(name: name) { finish in body { finish() } }
            case .typed:
                let operation = IOBlockOperation<Int, Int>.finishing(name: name) { input, finish in
                    body { finish(with: input) }
                }
                operation.input = 1
                return operation
            }
        }
    }

    @Test("A block that ignores its `finish` ends with an error that names the operation", arguments: Kind.allCases)
    func ignoredFinish(kind: Kind) async throws {
        let operation = kind.make("upload") { _ in }
        operation.start()
        await #expect(throws: LostFinishError.operation(name: "upload")) { try await operation.finished() }
        #expect(operation.error?.localizedDescription.contains("“upload”") == true)
        #expect(!operation.isCancelled)
    }

    @Test(
        "A `finish` that is kept and released later is lost then: the end comes on another thread, while a lock is held",
        arguments: Kind.allCases)
    func releasedUnderALock(kind: Kind) async throws {
        let lock = NSLock()
        let stored = Shared<(@Sendable () -> Void)?>(nil)
        let operation = kind.make("upload") { stored.value = $0 }
        operation.asyncCompletionBlock = { _ in lock.withLock {} }
        await onThread {
            operation.start()
            let copy = Shared(stored.value)
            stored.value = nil
            #expect(operation.isExecuting)
            lock.withLock { copy.value = nil }
        }
        await #expect(throws: LostFinishError.operation(name: "upload")) { try await operation.finished() }
    }

    @Test("A `finish` that is lost by a task ends the operation", arguments: Kind.allCases)
    func lostByATask(kind: Kind) async throws {
        enum Request { @TaskLocal static var id = 0 }
        let operation = kind.make("upload") { finish in
            Request.$id.withValue(1) {
                _ = Task {
                    await Task.yield()
                    if Request.id != 1 { finish() }
                }
            }
        }
        operation.start()
        await #expect(throws: LostFinishError.operation(name: "upload")) { try await operation.finished() }
    }

    @Test("A `finish` that is lost after an outcome came from elsewhere changes nothing", arguments: Kind.allCases)
    func lostAfterTheEnd(kind: Kind) async throws {
        let stored = Shared<(@Sendable () -> Void)?>(nil)
        let operation = kind.make { stored.value = $0 }
        await onThread {
            operation.start()
            operation.finish(withError: TestError.first)
        }
        stored.value = nil
        #expect(text(operation.error) == "first")
    }

    @Test("A cancelled operation whose `finish` is lost ends as cancelled, with its reason", arguments: Kind.allCases)
    func cancelled(kind: Kind) async throws {
        for reason in [TestError?.none, .reason] {
            let stored = Shared<(@Sendable () -> Void)?>(nil)
            let operation = kind.make { stored.value = $0 }
            await onThread {
                operation.start()
                if let reason { operation.cancel(withError: reason) } else { operation.cancel() }
            }
            #expect(operation.isExecuting)
            stored.value = nil
            _ = try? await operation.finished()
            #expect(text(operation.error) == (reason.map(text) ?? "cancelled"))
        }
    }

    @Test("A child whose `finish` is lost is a failure of its compound", arguments: Kind.allCases)
    func child(kind: Kind) async throws {
        let compound = CompoundOperation(
            name: "sync", operations: [kind.make("upload") { _ in }, kind.make("log") { $0() }])
        let error = await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(compound) }
        #expect(error?.suboperationErrors.map(\.name) == ["upload"])
        #expect(error?.leafErrors.first as? LostFinishError == .operation(name: "upload"))
    }

    @Test("Each kind of a lost finish has a code and a sentence that says what to do") func codes() {
        let errors: [LostFinishError] = [
            .operation(name: "upload"), .unit(name: "item 1", type: "Pages"), .run(name: "Pages"),
        ]
        #expect(errors.map(\.errorCode) == [1, 2, 3])
        for error in errors { #expect(error.errorDescription?.hasSuffix("Call it on every path.") == true) }
    }

    @Test("A `finish` that only a cancellation handler holds is not lost before the handler has been called")
    func heldByAHandler() async throws {
        let log = EventLog()
        let operation = AsyncBlockOperation { finish in
            finish.onCancel { log.add("cancelled: \(finish.isCancelled)") }
        }
        let tracker = LeakTracker()
        tracker.track(operation)
        await onThread { operation.start() }
        #expect(operation.isExecuting)
        operation.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await operation.finished() }
        #expect(log.events == ["cancelled: true"])
    }

    @Test("A `finish` that is lost ends the operation although operations that wait for it occupy all threads")
    func threadsAreOccupied() async {
        let queue = OperationQueue()
        queue.qualityOfService = .userInitiated
        let lost = AsyncBlockOperation { _ in }
        for _ in 0..<64 { queue.addOperation { lost.waitUntilFinished() } }
        lost.start()
        await onThread { queue.waitUntilAllOperationsAreFinished() }
        #expect(lost.error is LostFinishError)
    }

    @Test("What is lost is released", arguments: Kind.allCases) func released(kind: Kind) async throws {
        let tracker = LeakTracker()
        do {
            let token = tracker.token("closure")
            tracker.track(kind.make { _ in token.use() }).start()
            let withHandler = tracker.track(AsyncBlockOperation { finish in finish.onCancel { finish(nil) } })
            withHandler.start()
            withHandler.finish()
        }
        await tracker.expectAllReleased()
    }
}
