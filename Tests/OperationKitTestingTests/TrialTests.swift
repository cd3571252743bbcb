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

    @Test("An error of the closure is reported without the advice to make the operation there")
    func throwingClosure() async {
        struct NoServer: Error {}
        struct SentenceError: LocalizedError { var errorDescription: String? { "There is no server." } }
        let report = await OperationContract.report { throw NoServer() }
        #expect(report.violations.map(\.description) == ["The closure threw an error: NoServer()."])
        let other = await OperationContract.report { throw SentenceError() }
        #expect(other.violations.map(\.description) == ["The closure threw an error: There is no server."])
    }

    @Test("A cancel() that waits for the work for a while is found")
    func waitingInCancel() async {
        for seconds in [0.25, 2, 10] {
            let report = await OperationContract.report(within: .seconds(20), rounds: 1) {
                WaitingForItsWork(seconds: seconds)
            }
            let found = report.violations.map(\.description)
            // The work had ended before it was cancelled.
            if found.isEmpty, seconds < 10 { continue }
            #expect(found.count == 1 && found[0].hasPrefix("It was cancelled while it worked, and its cancel() took "))
            #expect(found.first?.contains("don't wait") == true, "\(report)")
            return
        }
    }

    @Test("A cancel() that takes long now and then is not taken for one that waits")
    func slowCancel() async {
        let cancels = Shared(0)
        let report = await OperationContract.report(within: .seconds(20), rounds: 1) {
            WaitingForItsWork {
                cancels.change { cancels in
                    cancels += 1
                    return cancels.isMultiple(of: 2)
                }
            }
        }
        #expect(report.violations.isEmpty, "\(report)")
    }

    @Test("A sentence of the library stands for itself; the default work of a typed operation is named")
    func advice() async {
        let lost = await OperationContract.violations(rounds: 1) { AsyncBlockOperation(name: "lost") { _ in } }
        #expect(lost.map(\.description) == [LostFinishError.operation(name: "lost").localizedDescription])
        let empty = await OperationContract.violations(rounds: 1) { WithoutOutput() }
        #expect(empty.first?.description.contains("super.main(input:)") == true, "\(empty)")
    }

    @Test("A report says what was tried, with the seed")
    func report() async {
        let report = await OperationContract.report(rounds: 4, seed: 7) { EndingAtOnce() }
        #expect(report.seed == 7)
        #expect(report.operationCount > 10)
        #expect(report.situations.contains { $0.hasPrefix("not tried: cancelling it while it works") })
        #expect(report.description.contains("seed 7"))
        #expect(OperationContract.Rule.allCases.allSatisfy { !$0.advice.isEmpty })
    }

    private final class NeverReadyAfterDependency: ForeignOperation, @unchecked Sendable {
        let waitsForSuccess: Bool
        init(waitsForSuccess: Bool) { self.waitsForSuccess = waitsForSuccess }
        override var isReady: Bool {
            waitsForSuccess
                ? super.isReady && !dependencies.contains { $0.isCancelled } : super.isReady && dependencies.isEmpty
        }
    }

    @Test("A class that does not become ready when what it depends on ends is found", arguments: [false, true])
    func neverReadyAfterDependency(waitsForSuccess: Bool) async {
        let report = await OperationContract.report(within: .seconds(2), rounds: 4) {
            NeverReadyAfterDependency(waitsForSuccess: waitsForSuccess)
        }
        #expect(report.violations.map(\.rule) == [.becomesReady], "\(report)")
        let end = waitsForSuccess ? "was cancelled and ended" : "finished"
        let sentence = "What it depends on \(end), and was not started within 2.0 seconds: its isReady is false."
        #expect(report.violations.first?.sentence == sentence)
    }

    @Test("A watch that has looked for a while pauses between its looks")
    func watchPauses() async {
        let operation = Watched()
        let watch = Watch(operation, TrialRecord(limit: .seconds(1), seed: 0))
        await operation.wasWatchedForLong.opened()
        #expect(watch.end() == .zero)
        let looks = operation.lateLooks.value
        #expect(looks[0].duration(to: looks[50]) >= .milliseconds(50))
    }

    /// Writes down when it was asked for its state, after the looks that have no pause.
    private final class Watched: Operation, @unchecked Sendable {
        let lateLooks = Shared<[ContinuousClock.Instant]>([])
        let wasWatchedForLong = Gate()
        private let firstLook = Shared<ContinuousClock.Instant?>(nil)

        override var isExecuting: Bool {
            let now = ContinuousClock.now
            let first = firstLook.change { first in
                first = first ?? now
                return first ?? now
            }
            if first.duration(to: now) > Watch.eagerness * 2 {
                let count = lateLooks.change { looks in
                    looks.append(now)
                    return looks.count
                }
                if count > 50 { wasWatchedForLong.open() }
            }
            return false
        }
    }
}
