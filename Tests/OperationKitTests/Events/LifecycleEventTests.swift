import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The events of one operation. `OutcomeOfLifeTests` has those of each way in which its life can go.
@Suite("Events of a life", .hangGuard) struct LifecycleEventTests {
    private let recorder = EventRecorder()
    private var events: [String] { recorder.events(of: "load") }

    /// Operations whose work is a closure, which ends as an error says, or succeeds.
    enum Kind: CaseIterable {
        case none, block, typedBlock, finishingBlock, task, typedTask, collection

        func make(_ error: TestError?) -> AsyncOperation {
            switch self {
            case .none: return ScriptedOperation("load") { $0.finish(withError: error) }
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
            case .collection:
                let run = Strategy.sequentialItems.make { _, completion in elsewhere { completion(error) } }
                    .makeOperation(on: [1])
                run.name = "load"
                return run
            }
        }
    }

    @Test("Operations of every kind have the same events", arguments: Kind.allCases) func kinds(kind: Kind) async {
        for error in [nil, TestError.first] {
            let recorder = EventRecorder()
            recorder.observe(kind.make(error)).start()
            await recorder.end(of: "load")
            let failure = kind == .collection ? "finished: failures of item 0" : "finished: first"
            #expect(recorder.events(of: "load") == ["started", "running", error == nil ? "finished" : failure])
        }
        let cancelled = recorder.observe(kind.make(nil))
        cancelled.cancel()
        cancelled.start()
        #expect(events == ["cancelled", "finished: cancelled"])
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
