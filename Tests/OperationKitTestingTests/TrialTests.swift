import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@testable import OperationKitTesting

@Suite("Trials", .timeLimit(.minutes(10)))
struct TrialTests {
    @Test("A trial whose task is cancelled ends, and its report says so")
    func cancelledTask() async {
        let (made, isMade) = (Shared(0), Gate())
        let trial = Task {
            await OperationContract.report(rounds: 10_000) {
                let count = made.change { made in
                    made += 1
                    return made
                }
                if count == 20 { isMade.open() }
                return ForeignOperation()
            }
        }
        await isMade.opened()
        trial.cancel()
        let report = await trial.value
        #expect(report.violations.isEmpty, "\(report)")
        #expect(report.situations.last == "not tried: what is left, because the task was cancelled", "\(report)")
        #expect(report.operationCount < 10_000)
    }

    @Test("A trial of a task that was cancelled before makes no operation")
    func cancelledBefore() async {
        let trial = Task {
            await Gate().opened()
            return await OperationContract.report { ForeignOperation() }
        }
        trial.cancel()
        let report = await trial.value
        #expect(report.situations == ["not tried: what is left, because the task was cancelled"])
        #expect(report.operationCount == 0 && report.violations.isEmpty, "\(report)")
    }
}
