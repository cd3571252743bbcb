import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("FinishObserver", .hangGuard) struct FinishObserverTests {
    @Test(
        "An observer reports the end of an operation of any class once",
        arguments: [ChildKind.asynchronous, .throwing, .block, .foreign])
    func reportsEnd(kind: ChildKind) async {
        let (reported, log) = (Gate(), EventLog())
        let operation = kind.make { log.add("work") }
        FinishObserver(operation) {
            log.add("reported")
            reported.open()
        }
        operation.start()
        await reported.opened()
        #expect(log.events == ["work", "reported"])
    }

    @Test("An observer reports an end that came before it", arguments: [ChildKind.asynchronous, .throwing, .block])
    func reportsEarlierEnd(kind: ChildKind) async {
        let reported = Gate()
        let operation = kind.make {}
        operation.start()
        #expect(operation.isFinished)
        FinishObserver(operation) { reported.open() }
        await reported.opened()
        #expect(reported.isOpen)
    }

    @Test("An observer that was ended reports nothing") func endsBefore() {
        let operation = ScriptedOperation()
        let watch = FinishObserver(operation) { Issue.record("It is reported.") }
        watch.end()
        operation.start()
        #expect(operation.isFinished)
    }
}
