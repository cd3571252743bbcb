import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// All events of one operation, in each way in which its life can go.
@Suite("Events of a life", .hangGuard) struct LifecycleEventTests {
    private let recorder = EventRecorder()

    private func load(
        main: @escaping ScriptedOperation.Script = { $0.finish() },
        didCancel: @escaping ScriptedOperation.Script = { $0.finish(withError: CancellationError()) }
    ) -> ScriptedOperation {
        recorder.observe(ScriptedOperation("load", main: main, didCancel: didCancel))
    }

    /// The events since the last one that a test has seen.
    private var events: [String] { recorder.events(of: "load") }

    // MARK: - Ends

    @Test("An operation starts, runs and finishes, and its outcome is in the last event", arguments: Start.allCases)
    func outcome(start: Start) async {
        for error in [nil, TestError.first] {
            let recorder = EventRecorder()
            let operation = recorder.observe(ScriptedOperation("load") { $0.finish(withError: error) })
            await start(operation)
            #expect(
                await recorder.end(of: "load") == [
                    "load: started", "load: running", error == nil ? "load: finished" : "load: finished: first",
                ])
        }
    }

    @Test("An operation without a `main()` of its own has the same events") func defaultMain() {
        let operation = recorder.observe(AsyncOperation())
        operation.name = "load"
        operation.start()
        #expect(events == ["started", "running", "finished"])
    }

    @Test("An operation that finishes on another thread has the same events, and finishing it again adds none")
    func finishedElsewhere() async {
        let operation = load { operation in
            elsewhere {
                operation.finish(withError: TestError.first)
                operation.finish(withError: TestError.second)
            }
        }
        operation.start()
        await recorder.end(of: "load")
        operation.finish()
        #expect(events == ["started", "running", "finished: first"])
    }

    @Test("Of several threads that finish an operation, the one that counts makes an event")
    func finishedConcurrently() async {
        let operation = load { _ in }
        operation.start()
        await concurrently((0..<4).map { number in { operation.finish(withError: TestError.numbered(number)) } })
        await recorder.end(of: "load")
        #expect(events.dropLast() == ["started", "running"] && events.last == "finished: \(text(operation.error))")
    }

    @Test("An operation that was finished before its start has one event, when it is started")
    func finishedBeforeTheStart() {
        for (error, end) in [(nil, "finished"), (TestError.first, "finished: first")] {
            let recorder = EventRecorder()
            let operation = recorder.observe(ScriptedOperation("load"))
            operation.finish(withError: error)
            #expect(recorder.events.isEmpty)
            operation.start()
            #expect(recorder.events(of: "load") == [end])
        }
    }

    @Test("Starting an operation again adds no event") func startedAgain() {
        let operation = load()
        for _ in 1...3 { operation.start() }
        #expect(events == ["started", "running", "finished"])
        let executing = recorder.observe(ScriptedOperation.idle("executing"))
        for _ in 1...3 { executing.start() }
        #expect(recorder.events(of: "executing") == ["started", "running"])
        executing.finish()
    }

    @Test("An operation that is never started has no events, other than that of its cancellation") func neverStarted() {
        do { _ = load() }
        #expect(events.isEmpty)
        do { load().cancel() }
        #expect(events == ["cancelled"])
    }

    // MARK: - Cancellation

    @Test(
        "An operation that is cancelled before its start says so immediately, and does not run",
        arguments: Start.allCases)
    func cancelledBeforeTheStart(start: Start) async {
        let operation = load()
        operation.cancel()
        #expect(events == ["cancelled"])
        await start(operation)
        await recorder.end(of: "load")
        #expect(events == ["cancelled", "finished: cancelled"])
    }

    @Test("The outcome before the start is in the last event, cancelled before or after that")
    func finishedAndCancelledBeforeTheStart() {
        for cancelsFirst in [true, false] {
            for (error, end) in [(nil, "finished"), (TestError.first, "finished: first")] {
                let recorder = EventRecorder()
                let operation = recorder.observe(ScriptedOperation("load"))
                if cancelsFirst { operation.cancel() }
                operation.finish(withError: error)
                if !cancelsFirst { operation.cancel() }
                operation.start()
                #expect(recorder.events(of: "load") == ["cancelled", end])
            }
        }
    }

    @Test("A cancellation while the operation executes comes before `didCancel()` and what that does")
    func cancelledWhileExecuting() {
        let recorder = recorder
        let seen = Shared<[String]>([])
        let operation = load(
            main: { _ in },
            didCancel: {
                seen.value = recorder.events(of: "load")
                $0.finish(withError: CancellationError())
            })
        operation.start()
        #expect(events == ["started", "running"])
        operation.cancel()
        #expect(seen.value == ["started", "running", "cancelled"])
        #expect(events == ["started", "running", "cancelled", "finished: cancelled"])
    }

    @Test("An outcome other than a cancellation stands in the last event of an operation that was cancelled")
    func outcomeAfterCancellation() {
        for (error, end) in [(nil, "finished"), (TestError.first, "finished: first")] {
            let recorder = EventRecorder()
            let operation = recorder.observe(ScriptedOperation.idle("load"))
            operation.start()
            operation.cancel()
            operation.finish(withError: error)
            #expect(recorder.events(of: "load") == ["started", "running", "cancelled", end])
        }
    }

    @Test("A cancellation inside `main()` is an event immediately") func cancelledInMain() {
        let recorder = recorder
        let seen = Shared<[String]>([])
        let operation = load { operation in
            operation.cancel()
            seen.value = recorder.events(of: "load")
        }
        operation.start()
        #expect(seen.value == ["started", "running", "cancelled"])
        #expect(events == ["started", "running", "cancelled", "finished: cancelled"])
    }

    @Test("A cancellation after the outcome is no event") func cancelledTooLate() {
        let operation = load()
        operation.asyncCompletionBlock = { [weak operation] _ in operation?.cancel() }
        operation.start()
        operation.cancel(withError: TestError.reason)
        #expect(events == ["started", "running", "finished"])
    }

    @Test("Cancelling again is no event, on whatever thread") func cancelledAgain() async {
        let operation = load(main: { _ in }, didCancel: { _ in })
        operation.start()
        await concurrently(Array(repeating: { operation.cancel() }, count: 4))
        operation.cancel(withError: TestError.reason)
        operation.finish(withError: CancellationError())
        await recorder.end(of: "load")
        #expect(events == ["started", "running", "cancelled", "finished: cancelled"])
    }

    @Test("The reason of a cancellation is in the last event") func reason() {
        for isStarted in [true, false] {
            let recorder = EventRecorder()
            let operation = recorder.observe(
                ScriptedOperation("load", main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) }))
            if isStarted { operation.start() }
            operation.cancel(withError: TestError.reason)
            operation.start()
            let head = isStarted ? ["started", "running"] : []
            #expect(recorder.events(of: "load") == head + ["cancelled", "finished: reason"])
        }
    }
}
