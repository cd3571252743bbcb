import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Events of operations whose work is a closure, and what observers find when they are called.
@Suite("Events of work", .hangGuard) struct WorkEventTests {
    /// Operations that call a closure, which ends as an error says, or succeeds.
    enum Kind: CaseIterable {
        case block, typedBlock, finishingBlock, task, typedTask

        func make(_ error: TestError?) -> AsyncOperation {
            switch self {
            case .block: return AsyncBlockOperation(name: "load") { finish in elsewhere { finish(error) } }
            case .typedBlock:
                return IOBlockOperation<Void, Int>(name: "load") { _ in
                    if let error { throw error }
                    return 1
                }
            case .finishingBlock:
                return IOBlockOperation<Void, Int>.finishing(name: "load") { _, finish in
                    elsewhere { if let error { finish(error) } else { finish(with: 1) } }
                }
            case .task: return TaskOperation(name: "load") { if let error { throw error } }
            case .typedTask: return IOTaskOperation<Void, Void>(name: "load") { _ in if let error { throw error } }
            }
        }
    }

    private let recorder = EventRecorder()
    private var events: [String] { recorder.events(of: "load") }

    @Test("An operation that calls a closure has the same events as others", arguments: Kind.allCases)
    func closures(kind: Kind) async {
        for (error, end) in [(nil, "finished"), (TestError.first, "finished: first")] {
            let recorder = EventRecorder()
            let operation = recorder.observe(kind.make(error))
            operation.start()
            await recorder.end(of: "load")
            #expect(recorder.events(of: "load") == ["started", "running", end])
        }
    }

    @Test("A closure that is not called because of a cancellation has no events of its own", arguments: Kind.allCases)
    func cancelledBeforeTheStart(kind: Kind) {
        let operation = recorder.observe(kind.make(nil))
        operation.cancel()
        operation.start()
        #expect(events == ["cancelled", "finished: cancelled"])
    }

    @Test("A task that is cancelled ends after the event of its cancellation") func cancelledTask() async {
        let begun = Gate()
        let operation = recorder.observe(
            TaskOperation(name: "load") {
                begun.open()
                try await cancellation()
            })
        operation.start()
        await begun.opened()
        operation.cancel()
        await recorder.end(of: "load")
        #expect(events == ["started", "running", "cancelled", "finished: cancelled"])
    }

    @Test("A missing input is the outcome in the last event, and the operation runs nevertheless") func missingInput() {
        let operation = recorder.observe(IOBlockOperation<Int, Int>(name: "load") { $0 })
        operation.start()
        #expect(events == ["started", "running", "finished: IOOperationError"])
    }

    @Test("The end of an operation whose `finish` was lost is an event, and nothing else is") func lostFinish() async {
        let operation = recorder.observe(AsyncBlockOperation(name: "load") { _ in })
        operation.start()
        await recorder.end(of: "load")
        #expect(events == ["started", "running", "finished: LostFinishError"])
    }

    // MARK: - What observers find

    @Test("When observers are called, the operation is in the state of the event, and its error can be read at the end")
    func states() {
        let log = EventLog()
        let recorder = EventRecorder { operation, event in
            let states = [
                operation.isExecuting ? "executing" : nil, operation.isCancelled ? "cancelled" : nil,
                operation.isFinished ? "finished" : nil, operation.error == nil ? nil : text(operation.error),
            ]
            log.add("\(event.kind.line): \(states.compactMap(\.self).joined(separator: ", "))")
        }
        let operation = recorder.observe(
            ScriptedOperation("load", main: { _ in }, didCancel: { $0.finish(withError: TestError.first) }))
        operation.start()
        operation.cancel()
        #expect(
            log.events == [
                "started: executing", "running: executing", "cancelled: executing, cancelled",
                "finished: first: cancelled, finished, first",
            ])
    }

    @Test("The events come around the work: `main()` after “running”, and the end after `asyncCompletionBlock`")
    func aroundTheWork() {
        let log = EventLog()
        let recorder = EventRecorder { _, event in log.add(event.kind.line) }
        recorder.observe(ScriptedOperation.logged(log)).start()
        #expect(log.events == ["started", "running", "main", "asyncCompletionBlock success", "finished"])
    }

    @Test("An observer that is added later is told what happens from then on") func addedLater() {
        let operation = ScriptedOperation.idle("load")
        operation.start()
        _ = recorder.observe(operation)
        #expect(events.isEmpty)
        operation.cancel()
        operation.finish()
        #expect(events == ["cancelled", "finished"])
        _ = recorder.observe(operation)
        operation.cancel()
        #expect(events == ["cancelled", "finished"])
    }

    @Test("An observer that was removed is told nothing more, and others are") func removed() {
        let other = EventRecorder()
        let operation = other.observe(recorder.observe(ScriptedOperation.idle("load")))
        operation.start()
        operation.removeObserver(recorder)
        operation.finish()
        #expect(events == ["started", "running"] && other.events(of: "load") == ["started", "running", "finished"])
    }

    @Test("Events call an operation what it is called when they are delivered") func names() {
        let cancelled = recorder.observe(ScriptedOperation.idle("first"))
        cancelled.cancel()
        cancelled.name = "second"
        cancelled.start()
        #expect(recorder.events == ["first: cancelled", "second: finished: cancelled"])
        let started = recorder.observe(ScriptedOperation.idle("third"))
        let compound = CompoundOperation(name: "all", operations: [started])
        started.name = "fourth"
        started.start()
        started.name = "fifth"
        started.finish()
        #expect(recorder.events(of: "third") == ["added to all"])
        #expect(
            recorder.events(of: "fourth") == ["started", "running"] && recorder.events(of: "fifth") == ["finished"])
        compound.cancel()
    }

    @Test("The events of an operation have its identifier, in the order of their times") func identifiers() {
        let seen = Shared<[OperationEvent]>([])
        let recorder = EventRecorder { _, event in seen.change { $0.append(event) } }
        let operation = recorder.observe(ScriptedOperation("load"))
        operation.start()
        let times = seen.value.map(\.time)
        #expect(seen.value.map(\.operation) == Array(repeating: operation.observationID, count: 3))
        #expect(times == times.sorted() && seen.value.allSatisfy { $0.droppedCount == 0 })
    }
}
