#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// The turn of a closure on a queue against what keeps it from running, in many orders of their steps.
@Suite("Interleavings of the turn of a closure", .serialized, .takesTurns, .hangGuard)
struct QueueSlotInterleavingTests {
    private typealias Subject = QueueSlotSubject

    private static let cancelTask = Role<Subject>("cancel task") { $0.cancelTask() }
    private static let cancelOperations = Role<Subject>("cancel operations") { $0.cancelOperations() }
    private static let next = Role<Subject>("next") { $0.addNext() }

    @Test(
        "The turn and what cancels the task or the operation: one of them wins, and the place is given back",
        arguments: [[cancelTask, next], [cancelOperations], [cancelTask, cancelOperations]], [false, true])
    private func cancelled(roles: [Role<Subject>], isFailing: Bool) async {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        await expectNoProblems(
            "closure, \(roles.map(\.name)), failing: \(isFailing)", samples: (40, 30),
            { interleaving in
                let subject = QueueSlotSubject(isFailing: isFailing, interleaving)
                subject.beginTask()
                return subject
            }, roles, #_sourceLocation)
    }
}
#endif
