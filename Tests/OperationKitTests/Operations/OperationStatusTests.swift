import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What descriptions say of one operation, from values.
@Suite("Descriptions: texts", .hangGuard) struct OperationStatusTests {
    @Test(
        "An age is rounded down to a unit that fits its length",
        arguments: [
            (0, "0 ms"), (0.0404, "40 ms"), (0.999, "999 ms"), (1, "1.0 s"), (2.49, "2.4 s"), (9.99, "9.9 s"),
            (10, "10 s"), (31.9, "31 s"), (119.9, "119 s"), (120, "2 min 0 s"), (312, "5 min 12 s"),
            (7_199, "119 min 59 s"), (7_200, "2 h 0 min"), (90_061, "25 h 1 min"),
        ])
    func age(seconds: Double, text: String) {
        #expect(ageText(.seconds(seconds)) == text)
    }

    @Test(
        "Every state has a text",
        arguments: [
            (OperationStatus.notStarted, "not started"),
            (.starting, "starting"),
            (.executing(nil), "executing"),
            (.executing(.seconds(31)), "executing for 31 s"),
            (.draining(nil), "told to end, waiting for its children"),
            (.draining(.seconds(31)), "told to end, waiting for its children, executing for 31 s"),
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

    @Test("The age is the time since the start", .enabled(if: OperationDiagnostics.level != .off))
    func ageSinceStart() throws {
        let operation = ScriptedOperation.idle("a")
        operation.start()
        let began = try #require(operation.withState { $0.execution?.startTime })
        #expect(operation.summary(at: began + .seconds(31)) { nil } == "“a”: executing for 31 s")
        #expect(operation.summary(at: began) { nil } == "“a”: executing for 0 ms")
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
