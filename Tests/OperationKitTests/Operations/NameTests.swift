import OperationKitTestSupport
import OperationKitTimelines

@testable import OperationKit

/// The name of an operation, which any thread may set while the library reads it for a message.
@Suite("Names", .hangGuard) struct NameTests {
    @Test("An operation has the name that was set last") func theNameThatWasSetLast() {
        let operation = ScriptedOperation.idle()
        #expect(operation.name == nil)
        operation.name = "first"
        operation.name = "second"
        #expect(operation.name == "second" && operation.displayName == "second")
        operation.name = nil
        #expect(operation.name == nil)
    }

    @Test("An empty name counts as none, in errors, events and reports") func emptyName() throws {
        let (reporter, reports) = (MisuseReporter(), Shared<[UnfinishedOperation]>([]))
        reporter.handler = { report in
            if case .released(let operation) = report { reports.change { $0.append(operation) } }
        }
        let operation = ScriptedOperation("")
        let recorder = OperationTimelineRecorder()
        operation.addObserver(recorder)
        #expect(operation.displayName == "ScriptedOperation" && operation.displayName(at: 2) == "ScriptedOperation 2")
        _ = ExecutionRecord(operation, nil, reporter, at: .now)
        reporter.waitForReports()
        #expect(reports.value.map(\.name) == ["ScriptedOperation"])
        operation.start()
        let entry = try #require(recorder.timeline[operation.observationID])
        #expect(entry.name == "ScriptedOperation" && entry.outcome == .success)
    }

    /// Longer than what a string holds without memory of its own.
    private static let names = (0..<4).map { "a name that needs memory of its own, number \($0)" }

    @Test("The name may be set while another thread asks how messages call the operation")
    func itMayBeSetWhileAnotherThreadAsks() async {
        let operation = ScriptedOperation.idle()
        operation.name = Self.names[0]
        let strange = EventLog()
        await concurrently([
            { for round in 0..<2_000 { operation.name = Self.names[round % 4] + "" } },
            { for round in 0..<2_000 { operation.name = (Self.names[round % 4] + " again").lowercased() } },
            {
                for _ in 0..<500 {
                    let text = operation.debugDescription
                    if !text.contains("a name that needs memory of its own, number ") { strange.add(text) }
                }
            },
        ])
        #expect(strange.events.isEmpty)
    }

    @Test("An operation that the library makes is called by what it was made from, before and after its end")
    func fallback() async throws {
        final class Load: IOOperation<Void, Int>, @unchecked Sendable {
            override func main(input: Void) { finish(withError: TestError.first) }
        }
        let gathered = [Load()].gathered()
        let operations: [(AsyncOperation, String)] = [
            (gathered, "gathered Load"), (Load().map { $0 }, "Load"), (Load().mapError { $0 }.map { $0 }, "Load"),
            (Load().recover { throw $0 }, "Load"),
            (Load().recoverRun { _ in Load() }.map { $0 }, "Load"), ([Load()].gathered().map { $0 }, "gathered Load"),
            ([[Load()].gathered()].gathered(), "gathered IOOperation<(), Array<Int>>"),
        ]
        for (operation, name) in operations {
            for isFinished in [false, true] {
                #expect(operation.debugDescription.hasPrefix("“\(name)”: "), "\(operation.debugDescription)")
                if !isFinished { await Start.byHand(operation) }
            }
        }
        #expect(
            gathered.error?.localizedDescription.hasPrefix("“gathered Load”: 1 of 1 operation failed: “Load 0”") == true
        )
        let after = AsyncOperation()
        after.requireSuccess(of: operations[1].0)
        after.start()
        guard case .dependencyFailed(_, "Load", _) = after.error as? DependencyError else {
            Issue.record("\(text(after.error))")
            return
        }
        let queue = OperationQueue.serial(name: "uploads")
        let place = Shared<Operation?>(nil)
        try await queue.run {
            place.value = queue.operations.first
            #expect(place.value?.debugDescription.hasPrefix("“run on uploads”: ") == true)
        }
        try await queue.allOperationsFinished()
        #expect(place.value?.debugDescription.hasPrefix("“run on uploads”: ") == true)
    }

    @Test("A report calls an operation that the library makes by what it was made from") func reports() {
        final class Load: IOOperation<Void, Int>, @unchecked Sendable {}
        let (reporter, reports) = (MisuseReporter(), Shared<[UnfinishedOperation]>([]))
        reporter.handler = { report in
            if case .released(let operation) = report { reports.change { $0.append(operation) } }
        }
        let queue = OperationQueue.serial(name: "uploads")
        let operations: [AsyncOperation] = [
            Load().map { $0 }, Load().recoverRun { _ in Load() }, [Load()].gathered(),
            QueueSlot(name: nil, on: queue), QueueSlot(name: "backup", on: queue), Load(),
        ]
        // As if each were released while it executes.
        for operation in operations { _ = ExecutionRecord(operation, nil, reporter, at: .now) }
        reporter.waitForReports()
        let names = ["Load", "Load", "gathered Load", "run on \(queue.displayName)", "backup", "Load"]
        #expect(reports.value.map(\.name) == names)
        let derived = "IOOperation<(), Int>"
        let types = [derived, derived, "gathered Load", "run on a queue", "run on a queue", "Load"]
        for (report, type) in zip(reports.value, types) {
            #expect(report.description.hasPrefix("OperationKit: “\(report.name)” (\(type)) was released"))
        }
    }
}
