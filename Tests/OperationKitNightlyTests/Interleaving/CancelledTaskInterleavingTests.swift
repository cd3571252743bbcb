#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// A task that waits for an operation and is cancelled, against the end of the operation, in many orders of their
/// steps. The runtime cancels a task with a lock held that resuming it takes, too, so no code of a user may be called
/// there.
@Suite("Interleavings of cancelled tasks", .serialized, .takesTurns, .hangGuard)
struct CancelledTaskInterleavingTests {
    private func tryOut(
        _ title: String, _ kind: AwaitedSubject.Kind, _ roles: [Role<AwaitedSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        await expectNoProblems(
            "\(kind), \(title)", samples: (30, 20),
            { interleaving in
                let subject = AwaitedSubject(kind, interleaving)
                subject.beginTask()
                return subject
            }, roles, location)
    }

    private static let cancel = Role<AwaitedSubject>("cancel") { $0.cancelTask() }

    @Test(
        "A task's cancellation ends what it runs, and calls nothing of a user's with a lock",
        arguments: AwaitedSubject.Kind.allCases)
    func cancelled(kind: AwaitedSubject.Kind) async {
        await tryOut("cancel", kind, [CancelledTaskInterleavingTests.cancel])
    }

    @Test(
        "A task's cancellation against the end of what it runs, both with a lock of the user's",
        arguments: [AwaitedSubject.Kind.queue, .coordinator])
    func cancelledAgainstTheEnd(kind: AwaitedSubject.Kind) async {
        await tryOut("cancel, end", kind, [CancelledTaskInterleavingTests.cancel, Role("end") { $0.end() }])
    }
}
#endif
