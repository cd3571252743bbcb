import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Why a child has not started: where it stands × why no further one begins, from values.
@Suite("Descriptions: reasons", .hangGuard) struct ChildSnapshotTests {
    private typealias BlockedReason = ChildSnapshot.BlockedReason
    private static let blockedReasons: [BlockedReason?] = [.notStarted, .suspended, .cancelling, .limit(2), nil]

    // not begun | suspended | cancelling | limit 2 | none
    static let table: [(ChildPhase, isReady: Bool, [String?])] = [
        (.added, true, [nil] + Array(repeating: "about to become ready", count: 4)),
        (.waiting, true, [nil] + Array(repeating: "about to become ready", count: 4)),
        (
            .ready, true,
            [
                nil, "ready, but the children are suspended", "ready, but the children are being cancelled",
                "ready, but the limit of 2 is reached", "ready, waiting for a thread",
            ]
        ),
        (.starting, true, Array(repeating: "starting", count: 5)),
        (.detached, true, Array(repeating: "starting", count: 5)),
        (.ending(.detached), true, Array(repeating: "starting", count: 5)),
        (.queued, false, Array(repeating: "not ready by itself", count: 5)),
        (
            .queued, true,
            [
                nil, "ready, but the children are suspended", "ready, but the children are being cancelled",
                "ready, but the limit of 2 is reached", "ready, waiting for a thread",
            ]
        ),
    ]

    @Test(
        "A description says why a child has not started, in each state of the child and of its parent", arguments: table
    )
    func reasons(phase: ChildPhase, isReady: Bool, reasons: [String?]) {
        let wait = "waiting for “b”, starting"
        let waits = [.added, .waiting, .queued].contains(phase)
        for (blockedReason, reason) in zip(Self.blockedReasons, reasons) {
            #expect(
                ChildSnapshot.reason(phase.stage, wait: nil, isReady: isReady, blockedReason: blockedReason) == reason,
                "\(blockedReason as Any)")
            #expect(
                ChildSnapshot.reason(phase.stage, wait: wait, isReady: isReady, blockedReason: blockedReason)
                    == (waits ? wait : reason),
                "Who waits for another one says so, unless that does not matter any more.")
        }
    }
}
