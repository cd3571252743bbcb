import OperationKitTestSupport

@testable import OperationKit

@Suite("Descriptions: operations on queues", .hangGuard) struct QueueDescriptionTests {
    /// A queue on which an operation is executing, so that it is known.
    private static func knownQueue(limit: Int) async -> (queue: OperationQueue, first: ScriptedOperation) {
        let queue = OperationQueue()
        queue.name = "uploads"
        queue.maxConcurrentOperationCount = limit
        let first = ScriptedOperation.idle("first")
        queue.addOperation(first)
        await eventually("it does not begin") { first.isExecuting }
        return (queue, first)
    }

    @Test("An operation says why its queue does not start it", .enabled(if: OperationDiagnostics.level != .off))
    func knownQueue() async {
        let (queue, first) = await Self.knownQueue(limit: 1)
        let operation = ScriptedOperation("a")
        #expect(operation.debugDescription == "“a”: not started, on no known queue")
        queue.addOperation(operation)
        #expect(operation.debugDescription == "“a”: ready, but the limit of 1 of its queue “uploads” is reached")
        queue.isSuspended = true
        #expect(operation.debugDescription == "“a”: ready, but its queue “uploads” is suspended")
        let (second, third) = (ScriptedOperation.idle("second"), ScriptedOperation("third"))
        for other in [second, third] { operation.addDependency(other) }
        #expect(operation.debugDescription == "“a”: waiting for “second” and 1 more, which has not been started")
        // What has started does not wait for its dependencies any more.
        second.addDependency(third)
        second.start()
        #expect(withoutAges(operation) == "“a”: waiting for “second” and 1 more, which is executing")
        third.start()
        for other in [first, second] { other.finish() }
        queue.isSuspended = false
        try? await operation.finished()
        #expect(operation.debugDescription == "“a”: finished")
    }

    @Test(
        "An operation that a task awaits, a closure and an operation with a delay are found on a queue that has started none",
        .enabled(if: OperationDiagnostics.level != .off), arguments: ["run", "run several", "closure", "delay"])
    func awaited(form: String) async throws {
        let (queue, operation) = (OperationQueue.suspended("awaited"), ScriptedOperation("a"))
        async let end: Void =
            switch form {
            case "run": queue.run(operation)
            case "run several": queue.run([operation])
            case "closure": queue.run(name: "a") {}
            default: { queue.addOperation(operation, after: .zero) }()
            }
        // A delay ends after the addition, and then Foundation is told so.
        await eventually("it is not added") { queue.operationCount > 0 && operation.isReady }
        let added = form == "closure" ? queue.operations.first : operation
        #expect(added?.debugDescription == "“a”: ready, but its queue “awaited” is suspended")
        #expect(OperationDiagnostics.queuesWithUnstarted.contains(queue))
        queue.isSuspended = false
        try await end
        try await queue.allOperationsFinished()
    }

    @Test("A queue lists its operations, executing ones first, and why others wait") func wholeQueue() async {
        let (queue, first) = await Self.knownQueue(limit: 1)
        let block = ChildKind.block.make("block") {}
        let dependent = ScriptedOperation("dependent")
        dependent.addDependency(block)
        let compound = CompoundOperation(name: "Sync", operations: [ScriptedOperation("child")])
        for operation in [block, dependent, compound] { queue.addOperation(operation) }
        let lines = { OperationDiagnostics.description(of: queue).split(separator: "\n").map(String.init) }
        #expect(
            withoutAges(lines().joined(separator: "\n")) == """
                queue “uploads”: limit 1, 4 operations
                  “first”: executing
                  “block”: ready, but the limit of 1 of the queue is reached
                  “dependent”: waiting for “block”, which has not been started
                  “Sync”: ready, but the limit of 1 of the queue is reached, 0 of 1 children have ended
                    “child”: not started
                """)
        queue.isSuspended = true
        first.finish()
        #expect(lines()[0] == "queue “uploads”: suspended, limit 1, 3 operations")
        #expect(lines()[1] == "  “block”: ready, but the queue is suspended")
        queue.isSuspended = false
        try? await compound.finished()
        try? await dependent.finished()
    }

    @Test("A queue with very many operations names some, and says how many others there are") func longQueue() {
        let queue = OperationQueue.suspended()
        for _ in 0..<(OperationTree.width + 7) { queue.addOperation {} }
        let lines = OperationDiagnostics.description(of: queue).split(separator: "\n")
        #expect(lines.count == OperationTree.width + 2)
        #expect(lines[0] == "queue “OperationQueue”: suspended, 107 operations")
        #expect(lines.last == "  … and 7 more")
        queue.cancelAllOperations()
        queue.isSuspended = false
    }

    @Test("Known queues are not kept alive, and those that are gone make room") func keepsNothingAlive() {
        let (known, operation, kept) = (KnownQueues(), ScriptedOperation.idle("a"), OperationQueue.suspended())
        kept.addOperation(operation)
        weak var gone: OperationQueue?
        for number in 0..<1_000 {
            let queue = OperationQueue()
            for queue in number == 500 ? [kept, queue, queue] : [queue, queue] { known.insert(queue) }
            gone = queue
        }
        #expect(gone == nil && known.entries.withLock(\.count) < 100 && known.queue(of: operation) === kept)
        operation.cancel()
        kept.isSuspended = false
    }

    private func snapshot(_ isSuspended: Bool, _ limit: Int?, count: Int = 0, executing: Int = 0) -> QueueSnapshot {
        QueueSnapshot(
            name: "q", isSuspended: isSuspended, limit: limit, operations: (0..<count).map { _ in Operation() },
            executingCount: executing)
    }

    @Test("A description says why an operation on a queue has not started, the nearest reason first") func reasons() {
        let reached = "ready, but the limit of 2 of the queue is reached"
        let free = "ready, waiting for a thread of the queue"
        for (isSuspended, limit, executing, reason) in [
            (true, nil, 5, "ready, but the queue is suspended"), (true, 2, 2, "ready, but the queue is suspended"),
            (false, 2, 2, reached), (false, 2, 3, reached), (false, 2, 1, free), (false, nil, 9, free),
        ] as [(Bool, Int?, Int, String)] {
            let snapshot = snapshot(isSuspended, limit, executing: executing)
            func text(_ wait: String? = nil, isReady: Bool) -> String {
                snapshot.reason(calling: "the queue", wait: wait, isReady: isReady)
            }
            #expect(text(isReady: true) == reason && text(isReady: false) == "not ready by itself")
            #expect(text("waiting for “a”", isReady: false) == "waiting for “a”")
        }
        #expect(snapshot(false, nil).text == "queue “q”: no operations")
        #expect(snapshot(true, nil, count: 1).text == "queue “q”: suspended, 1 operation")
        #expect(snapshot(true, 2, count: 3).text == "queue “q”: suspended, limit 2, 3 operations")
    }
}
