import OperationKitTestSupport
import OperationKitTimelines

@testable import OperationKit

@Suite("Descriptions: texts", .hangGuard) struct OperationStatusTests {
    @Test("Durations are written with about three digits, rounded down") func durations() {
        let durations: [(Duration, String)] = [
            (.zero, "0 s"), (.nanoseconds(1), "1 ns"), (.nanoseconds(1_000), "1 µs"), (.nanoseconds(1_050), "1.05 µs"),
            (.nanoseconds(12_345), "12.3 µs"), (.nanoseconds(999_999), "999 µs"), (.milliseconds(1_500), "1.5 s"),
            (.milliseconds(59_990), "59.9 s"), (.seconds(61), "1 min 1 s"), (.seconds(3_661), "1 h 1 min"),
            (.seconds(90_000), "1 d 1 h"), (.seconds(86_400 * 1_000 - 1), "999 d 23 h"),
            (.seconds(86_400 * 1_000), "1000 d"), (.seconds(-2), "−2 s"),
        ]
        for (duration, text) in durations { #expect(duration.shortText == text) }
        #expect(Duration.longest.shortText == "106751 d")
    }

    @Test(
        "Every state has a text",
        arguments: [
            (OperationStatus.notStarted, "not started"),
            (.starting, "starting"),
            (.waiting("waiting for “a”", nil), "waiting for “a”"),
            (.waiting("waiting for “a”", .seconds(31)), "executing for 31 s, waiting for “a”"),
            (.executing(nil), "executing"),
            (.executing(.seconds(31)), "executing for 31 s"),
            (.draining("children", nil), "told to end, waiting for its children"),
            (.draining("work", .seconds(31)), "executing for 31 s, told to end, waiting for its work"),
            (.finishing, "delivering its outcome"),
            (.finished, "finished"),
        ])
    func textOfState(status: OperationStatus, text: String) {
        #expect(status.text == text)
    }
}

@Suite("Descriptions: one operation", .hangGuard) struct OperationDescriptionTests {
    @Test("An operation describes each state of its life") func statesOfLife() async throws {
        let operation = ScriptedOperation.idle("a")
        let log = EventLog()
        operation.asyncCompletionBlock = { [weak operation] _ in log.add(operation.map(withoutAges) ?? "gone") }
        #expect(withoutAges(operation) == "“a”: not started")
        operation.start()
        #expect(withoutAges(operation) == "“a”: executing")
        operation.cancel()
        #expect(withoutAges(operation) == "“a”: cancelled, executing")
        operation.finish()
        #expect(log.events == ["“a”: cancelled, delivering its outcome"])
        #expect(withoutAges(operation) == "“a”: finished")
    }

    @Test("A block that runs on after `finish` is work, and no child") func finishedBlock() async throws {
        let work = HeldWork()
        let block = ThrowingBlockOperation(name: "block") { work() }
        OperationQueue().addOperation(block)
        await work.begun.opened()
        block.finish()
        #expect(withoutAges(block) == "“block”: told to end, waiting for its work")
        work.mayEnd.open()
        try await block.finished()
    }

    @Test("A description tells a finish with an error from one as cancelled", arguments: ChildKind.allCases)
    func endings(kind: ChildKind) async throws {
        let failed = ScriptedOperation("a") { $0.finish(withError: TestError.first) }
        let cancelled = kind.make("b") {}
        cancelled.cancel()
        await runAll([failed, cancelled])
        #expect(failed.debugDescription == "“a”: finished with an error")
        #expect(cancelled.summary(at: .now) { nil } == "“b”: finished as cancelled")
    }

    @Test("Age counts from the start", .enabled(if: OperationDiagnostics.level != .off)) func ageSinceStart() throws {
        let operation = ScriptedOperation.idle("a")
        operation.start()
        let began = try #require(operation.withState { $0.execution?.startTime })
        #expect(operation.summary(at: began + .seconds(31)) { nil } == "“a”: executing for 31 s")
        #expect(operation.summary(at: began) { nil } == "“a”: executing for 0 s")
        operation.finish()
        #expect(operation.withState { $0.execution } == nil)
    }

    @Test("An operation says which unfinished operation it waits for in the end") func followsDependencies() {
        let (login, upload) = (ScriptedOperation.idle("login"), ChildKind.block.make("upload") {})
        let notify = ScriptedOperation.idle("notify")
        upload.addDependency(login)
        notify.addDependency(upload)
        let waiting = "“notify”: waiting for “upload”, which"
        #expect(notify.debugDescription == "\(waiting) waits for “login”, which has not been started")
        login.start()
        #expect(withoutAges(notify) == "\(waiting) waits for “login”, which is executing")
        login.finish()
        #expect(notify.debugDescription == "\(waiting) has not been started")
        upload.start()
        #expect(withoutAges(notify) == "“notify”: not started")
    }

    @Test("A description names a cycle of dependencies, and goes around it once") func cycle() {
        let operations = "abc".map { ScriptedOperation.idle(String($0)) }
        for index in 0..<3 { operations[index].addDependency(operations[(index + 1) % 3]) }
        let around = "waiting for “b”, which waits for “c”, which waits for “a”"
        #expect(operations[0].debugDescription == "“a”: \(around), in a cycle")
        // One that is not on the cycle, but waits for one that is.
        let external = ScriptedOperation.idle("external")
        external.addDependency(operations[1])
        #expect(external.debugDescription == "“external”: \(around), which waits for “b”, in a cycle")
        for operation in operations { for other in operation.dependencies { operation.removeDependency(other) } }
    }

    @Test("A description follows a long chain of dependencies up to its limit") func longChain() {
        let reach = WaitDescriptions.reach
        let operations = (0...(reach + 10)).map { ScriptedOperation.idle("\($0)") }
        for (operation, previous) in zip(operations.dropFirst(), operations) { operation.addDependency(previous) }
        #expect(operations[reach].debugDescription.hasSuffix("more for “0”, which has not been started"))
        #expect(operations[reach + 10].debugDescription.hasSuffix("more for “10”, which waits for others"))
    }
}

@Suite("Names", .hangGuard) struct NameTests {
    @Test("An empty name counts as none, in errors, events and reports") func emptyName() throws {
        let reports = ReleaseReports()
        let operation = ScriptedOperation("")
        let recorder = OperationTimelineRecorder()
        operation.addObserver(recorder)
        #expect(operation.displayName == "ScriptedOperation" && operation.displayName(at: 2) == "ScriptedOperation 2")
        _ = ExecutionRecord(operation, nil, reports.reporter, at: .now)
        #expect(reports.all.map(\.name) == ["ScriptedOperation"])
        operation.start()
        let entry = try #require(recorder.timeline[operation.observationID])
        #expect(entry.name == "ScriptedOperation" && entry.outcome == .success)
    }

    /// Longer than what a string holds without memory of its own.
    private static let names = (0..<4).map { "a name that needs memory of its own, number \($0)" }

    @Test("The name may be set while another thread reads it") func itMayBeSetWhileAnotherThreadAsks() async {
        let (operation, strange) = (ScriptedOperation.idle(Self.names[0]), EventLog())
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

    @Test("An operation that the library makes is called by what it was made from, also after its end, and in reports")
    func fallback() async throws {
        final class Load: IOOperation<Void, Int>, @unchecked Sendable {
            override func main(input: Void) { finish(withError: TestError.first) }
        }
        let derived = "IOOperation<(), Int>"
        let operations: [(AsyncOperation, name: String, type: String)] = [
            (Load(), "Load", "Load"), ([Load()].gathered(), "gathered Load", "gathered Load"),
            (Load().map { $0 }, "Load", derived), (Load().mapError { $0 }.map { $0 }, "Load", derived),
            (Load().recover { throw $0 }, "Load", derived),
            (Load().recoverRun { _ in Load() }.map { $0 }, "Load", derived),
            ([Load()].gathered().map { $0 }, "gathered Load", "IOOperation<(), Array<Int>>"),
            ([[Load()].gathered()].gathered(), "gathered IOOperation<(), Array<Int>>", ""),
        ]
        for (operation, name, _) in operations {
            for isFinished in [false, true] {
                #expect(operation.debugDescription.hasPrefix("“\(name)”: "), "\(operation.debugDescription)")
                if !isFinished { await Start.byHand(operation) }
            }
        }
        let sentence = operations[1].0.error?.localizedDescription ?? ""
        #expect(sentence.hasPrefix("“gathered Load”: 1 of 1 operation failed: “Load 0”"))
        let after = AsyncOperation()
        after.requireSuccess(of: operations[2].0)
        after.start()
        #expect(brief(after.error).contains(" after Load: "))
        let (queue, place) = (OperationQueue.serial(name: "uploads"), Shared<Operation?>(nil))
        for isFinished in [false, true] {
            if !isFinished { try await queue.run { place.value = queue.operations.first } }
            #expect(place.value?.debugDescription.hasPrefix("“run on uploads”: ") == true)
            try await queue.allOperationsFinished()
        }
        // As if each were released while it executes.
        let slots: [(AsyncOperation, name: String, type: String)] = [
            (QueueSlot(name: nil, on: queue), "run on \(queue.displayName)", "run on a queue"),
            (QueueSlot(name: "backup", on: queue), "backup", "run on a queue"),
        ]
        let reports = ReleaseReports()
        for (operation, name, type) in operations + slots {
            _ = ExecutionRecord(operation, nil, reports.reporter, at: .now)
            let report = reports.all.last?.description ?? ""
            #expect(report.hasPrefix("OperationKit: “\(name)” (\(type)"), "\(report)")
        }
    }
}
