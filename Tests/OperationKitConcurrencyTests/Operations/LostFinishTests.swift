import OperationKitTestSupport

@testable import OperationKit

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

    enum Request { @TaskLocal static var id = 0 }

    @Test("A `finish` that a block ignores, or a task loses, is an error that names it", arguments: Kind.allCases)
    func ignoredFinish(kind: Kind) async throws {
        let ignoring = kind.make("upload") { _ in }
        let handing = kind.make("upload") { finish in
            Request.$id.withValue(1) {
                _ = Task {
                    await Task.yield()
                    if Request.id != 1 { finish() }
                }
            }
        }
        for operation in [ignoring, handing] {
            operation.start()
            await #expect(throws: LostFinishError.operation(name: "upload")) { try await operation.finished() }
            #expect(operation.error?.localizedDescription.contains("“upload”") == true && !operation.isCancelled)
        }
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

    @Test(
        "A `finish` that is lost after an outcome or a cancellation came from elsewhere leaves that as it is",
        arguments: Kind.allCases)
    func lostLater(kind: Kind) async throws {
        let ends: [@Sendable (AsyncOperation) -> Void] = [
            { $0.finish(withError: TestError.first) }, { $0.cancel() }, { $0.cancel(withError: TestError.reason) },
        ]
        for (end, outcome) in zip(ends, ["first", "cancelled", "reason"]) {
            let stored = Shared<(@Sendable () -> Void)?>(nil)
            let operation = kind.make { stored.value = $0 }
            await onThread {
                operation.start()
                end(operation)
            }
            #expect(operation.isExecuting == operation.isCancelled)
            stored.value = nil
            try? await operation.finished()
            #expect(text(operation.error) == outcome)
        }
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
