import OperationKitTestSupport

@testable import OperationKit

/// What descriptions say of one operation, from values.
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
            (.waiting("waiting for “a”", .seconds(31)), "waiting for “a”, executing for 31 s"),
            (.executing(nil), "executing"),
            (.executing(.seconds(31)), "executing for 31 s"),
            (.draining("children", nil), "told to end, waiting for its children"),
            (.draining("work", .seconds(31)), "told to end, waiting for its work, executing for 31 s"),
            (.finishing, "delivering its outcome"),
            (.finished, "finished"),
        ])
    func textOfState(status: OperationStatus, text: String) {
        #expect(status.text == text)
    }
}

/// What real operations say of themselves.
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
        let (begun, mayEnd) = (Gate(), Gate())
        let block = ThrowingBlockOperation(name: "block") {
            begun.open()
            mayEnd.pass()
        }
        OperationQueue().addOperation(block)
        await begun.opened()
        block.finish()
        #expect(
            withoutAges(block).replacingOccurrences(of: ", executing", with: "")
                == "“block”: told to end, waiting for its work")
        mayEnd.open()
        try await block.finished()
    }

    @Test("The age is the time since the start", .enabled(if: OperationDiagnostics.level != .off))
    func ageSinceStart() throws {
        let operation = ScriptedOperation.idle("a")
        operation.start()
        let began = try #require(operation.withState { $0.execution?.startTime })
        #expect(operation.summary(at: began + .seconds(31)) { nil } == "“a”: executing for 31 s")
        #expect(operation.summary(at: began) { nil } == "“a”: executing for 0 s")
        operation.finish()
        #expect(operation.withState { $0.execution } == nil)
    }

    @Test("An operation says which unfinished operation it waits for in the end") func followsDependencies() {
        let login = ScriptedOperation.idle("login")
        let upload = BlockOperation {}
        upload.name = "upload"
        upload.addDependency(login)
        let notify = ScriptedOperation.idle("notify")
        notify.addDependency(upload)
        #expect(
            notify.debugDescription
                == "“notify”: waiting for “upload”, which waits for “login”, which has not been started")
        login.start()
        #expect(withoutAges(notify) == "“notify”: waiting for “upload”, which waits for “login”, executing")
        login.finish()
        #expect(notify.debugDescription == "“notify”: waiting for “upload”, which has not been started")
        upload.start()
        #expect(withoutAges(notify) == "“notify”: not started")
    }

    @Test("A description names a cycle of dependencies, and goes around it once") func cycle() {
        let operations = "abc".map { ScriptedOperation.idle(String($0)) }
        for index in 0..<3 { operations[index].addDependency(operations[(index + 1) % 3]) }
        #expect(
            operations[0].debugDescription
                == "“a”: waiting for “b”, which waits for “c”, which waits for “a”, in a cycle")
        // One that is not on the cycle, but waits for one that is.
        let external = ScriptedOperation.idle("external")
        external.addDependency(operations[1])
        #expect(
            external.debugDescription
                == "“external”: waiting for “b”, which waits for “c”, which waits for “a”, which waits for “b”, in a cycle"
        )
        for operation in operations { for other in operation.dependencies { operation.removeDependency(other) } }
    }

    @Test("A description follows a long chain of dependencies up to its limit") func longChain() {
        var operations = [ScriptedOperation.idle("0")]
        for index in 1...(WaitDescriptions.reach + 10) {
            operations.append(.idle("\(index)"))
            operations[index].addDependency(operations[index - 1])
        }
        #expect(
            operations[WaitDescriptions.reach].debugDescription.hasSuffix(
                "more for “0”, which has not been started"))
        #expect(
            operations[WaitDescriptions.reach + 10].debugDescription.hasSuffix(
                "more for “10”, which waits for others"))
    }
}
