import OperationKitTestSupport

@testable import OperationKit

/// The events of one operation. `OutcomeOfLifeTests` has those of each way in which its life can go.
@Suite("Events of a life", .hangGuard) struct LifecycleEventTests {
    private let recorder = EventRecorder()
    private var events: [String] { recorder.events(of: "load") }

    /// Operations whose work is a closure, which ends as an error says, or succeeds.
    private static let makers: [@Sendable (TestError?) -> AsyncOperation] = [
        { error in ScriptedOperation { $0.finish(withError: error) } },
        { error in AsyncBlockOperation { finish in elsewhere { finish(error) } } },
        { error in IOBlockOperation<Void, Int> { _ in if let error { throw error } else { return 1 } } },
        { error in
            IOBlockOperation<Void, Int>.finishing { _, finish in
                elsewhere { if let error { finish(error) } else { finish(with: 1) } }
            }
        },
        { error in TaskOperation { if let error { throw error } } },
        { error in IOTaskOperation<Void, Void> { _ in if let error { throw error } } },
        { error in
            Strategy.sequentialItems.make { _, completion in elsewhere { completion(error) } }.makeOperation(on: [1])
        },
    ]

    @Test("Operations of every kind have the same events", arguments: makers.indices) func kinds(index: Int) async {
        func observed(_ error: TestError?, _ recorder: EventRecorder) -> AsyncOperation {
            let operation = recorder.observe(Self.makers[index](error))
            operation.name = "load"
            return operation
        }
        for error in [nil, TestError.first] {
            let recorder = EventRecorder()
            let operation = observed(error, recorder)
            operation.start()
            await recorder.end(of: "load")
            let isRun = index == Self.makers.count - 1
            let end = error.map { isRun ? "finished: failures of item 0" : "finished: \($0)" } ?? "finished"
            #expect(recorder.events(of: "load") == ["started", "running", end], "\(type(of: operation))")
        }
        let cancelled = observed(nil, recorder)
        cancelled.cancel()
        cancelled.start()
        #expect(events == ["cancelled", "finished: cancelled"], "\(type(of: cancelled))")
    }

    // MARK: - What observers find

    @Test("Events come around the work, and find the operation in their state") func states() {
        let log = EventLog()
        let recorder = EventRecorder { operation, event in
            let states = [
                operation.isExecuting ? "executing" : nil, operation.isCancelled ? "cancelled" : nil,
                operation.isFinished ? "finished" : nil, operation.error == nil ? nil : text(operation.error),
            ]
            log.add("\(event.kind.line): \(states.compactMap(\.self).joined(separator: ", "))")
        }
        let operation = ScriptedOperation(
            "load", main: { _ in log.add("main") },
            didCancel: {
                log.add("didCancel")
                $0.finish(withError: TestError.first)
            })
        operation.asyncCompletionBlock = { _ in log.add("asyncCompletionBlock") }
        recorder.observe(operation).start()
        operation.cancel()
        #expect(
            log.events == [
                "started: executing", "running: executing", "main", "cancelled: executing, cancelled", "didCancel",
                "asyncCompletionBlock", "finished: first: cancelled, finished, first",
            ])
    }

    @Test("Events call an operation what it is called when they are delivered") func names() {
        let operation = recorder.observe(ScriptedOperation.idle("first"))
        let compound = CompoundOperation(name: "all", operations: [operation])
        operation.name = "second"
        operation.start()
        operation.name = "third"
        operation.finish()
        #expect(
            recorder.events == [
                "first: added to all", "second: started", "second: running", "third: finished",
            ])
        compound.cancel()
    }
}
