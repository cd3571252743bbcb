#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// The turn of a closure on a queue against what keeps it from running, in many orders of their steps.
@Suite("Interleavings of the turn of a closure", .serialized, .takesTurns, .hangGuard)
struct QueueSlotInterleavingTests {
    private func tryOut(
        _ title: String, isFailing: Bool = false, _ roles: [Role<QueueSlotSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        await expectNoProblems(
            "closure, \(title)", samples: (40, 30),
            { interleaving in
                let subject = QueueSlotSubject(isFailing: isFailing, interleaving)
                subject.beginTask()
                return subject
            }, roles, location)
    }

    private static let cancelTask = Role<QueueSlotSubject>("cancel task") { $0.cancelTask() }
    private static let cancelOperations = Role<QueueSlotSubject>("cancel operations") { $0.cancelOperations() }

    @Test(
        "The turn and the task's cancellation: one of them wins, and the place is given back", arguments: [false, true])
    func cancelledTask(isFailing: Bool) async {
        await tryOut("cancel task", isFailing: isFailing, [Self.cancelTask, Role("next") { $0.addNext() }])
    }

    @Test("The turn and the operation's cancellation: one of them wins, and the place is given back")
    func cancelledOperation() async {
        await tryOut("cancel operation", [Self.cancelOperations])
    }

    @Test("The turn, the task's cancellation and the operation's: one of them wins, and the place is given back")
    func bothCancelled() async {
        await tryOut("cancel task, cancel operation", [Self.cancelTask, Self.cancelOperations])
    }
}
#endif
