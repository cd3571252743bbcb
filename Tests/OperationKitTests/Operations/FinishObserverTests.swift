import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("FinishObserver", .hangGuard) struct FinishObserverTests {
    @Test(arguments: [ChildKind.asynchronous, .throwing, .block, .foreign])
    func theEndOfAnOperationIsReportedOnce(kind: ChildKind) async {
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

    @Test(arguments: [ChildKind.asynchronous, .throwing, .block])
    func anEndThatIsThereAlreadyIsReportedToo(kind: ChildKind) async {
        let reported = Gate()
        let operation = kind.make {}
        operation.start()
        #expect(operation.isFinished)
        FinishObserver(operation) { reported.open() }
        await reported.opened()
        #expect(reported.isOpen)
    }

    @Test func anEndIsNotReportedAfterTheWatch() {
        let operation = ScriptedOperation()
        let watch = FinishObserver(operation) { Issue.record("It is reported.") }
        watch.end()
        operation.start()
        #expect(operation.isFinished)
    }
}
