import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// All events of one operation, in each way in which its life can go.
@Suite("Events of a life", .hangGuard) struct LifecycleEventTests {
    private let recorder = EventRecorder()
    private var events: [String] { recorder.events(of: "load") }

    /// What happens to an operation that executes until it is told to end, and ends when it is cancelled.
    struct Life: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let events: [String]
        let steps: @Sendable (ScriptedOperation) -> Void

        init(_ name: String, _ events: [String], _ steps: @escaping @Sendable (ScriptedOperation) -> Void) {
            (testDescription, self.events, self.steps) = (name, events, steps)
        }

        static let all = [
            Life("never started", []) { _ in },
            Life("never started, but cancelled", ["cancelled"]) { $0.cancel() },
            Life("succeeds, is finished, started and cancelled again", ["started", "running", "finished"]) {
                $0.start()
                $0.finish()
                $0.finish(withError: TestError.second)
                $0.start()
                $0.cancel(withError: TestError.reason)
            },
            Life("fails", ["started", "running", "finished: first"]) {
                $0.start()
                $0.finish(withError: TestError.first)
            },
            Life("finished before the start", ["finished: first"]) {
                $0.finish(withError: TestError.first)
                $0.start()
            },
            Life("cancelled before the start", ["cancelled", "finished: cancelled"]) {
                $0.cancel()
                $0.start()
            },
            Life("cancelled with a reason before the start", ["cancelled", "finished: reason"]) {
                $0.cancel(withError: TestError.reason)
                $0.start()
            },
            Life("cancelled and finished before the start", ["cancelled", "finished"]) {
                $0.cancel()
                $0.finish()
                $0.start()
            },
            Life("finished and cancelled before the start", ["cancelled", "finished: first"]) {
                $0.finish(withError: TestError.first)
                $0.cancel()
                $0.start()
            },
            Life("cancelled twice", ["started", "running", "cancelled", "finished: cancelled"]) {
                $0.start()
                $0.cancel()
                $0.cancel(withError: TestError.reason)
            },
            Life("cancelled with a reason", ["started", "running", "cancelled", "finished: reason"]) {
                $0.start()
                $0.cancel(withError: TestError.reason)
            },
        ]
    }

    @Test("Each life has its events, and its outcome is in the last one", arguments: Life.all)
    func lives(life: Life) {
        let operation = recorder.observe(
            ScriptedOperation("load", main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) }))
        life.steps(operation)
        #expect(events == life.events)
        operation.finish()
    }

    // MARK: - Kinds of work

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

    @Test("Each kind of event has a sentence") func sentences() {
        let kinds: [OperationEvent.Kind] = [
            .added(to: OperationID(1), name: "sync"), .started, .waiting(for: "waiting for the network"), .running,
            .cancelled(reason: nil),
            .retrying(attempt: 2, error: TestError.first, delay: .seconds(3)), .finished(error: nil),
            .finished(error: TestError.second), .finished(error: CancellationError()),
        ]
        #expect(
            kinds.map(\.description) == [
                "was added to “sync”", "started", "is waiting for the network", "runs", "was cancelled",
                "retries in 3.0 seconds, because attempt 2 failed: first", "finished", "failed: second",
                "finished as cancelled",
            ])
    }
}
