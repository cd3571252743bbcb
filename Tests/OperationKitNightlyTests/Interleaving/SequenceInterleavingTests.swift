#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over sequences whose workers are virtual threads, and those who do something to them, in many orders of their
/// steps.
@Suite("Interleavings of runs over sequences", .serialized, .takesTurns, .hangGuard)
struct SequenceInterleavingTests {
    typealias Subject = SequenceSubject

    private static let start = Role<Subject>("start") { $0.start() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let lose = Role<Subject>("lose") { $0.lose(0) }
    private static let end = Role<Subject>("end") { $0.end(0) }
    private static let endSecond = Role<Subject>("end the second") { $0.end(1) }

    private static func scenes(limit: Int) -> [Scene<Subject>] {
        [
            Scene("Limit \(limit), cancelled: nothing is taken after that", [start, cancel]) {
                Subject(count: 3, limit: limit)
            },
            Scene("Limit \(limit), cancelled while an item ends", [start, end, cancel]) {
                Subject(count: 3, limit: limit, held: [0])
            },
            Scene("Limit \(limit), cancelled while a completion is lost", [start, lose, cancel]) {
                Subject(count: 2, limit: limit, held: [0])
            },
        ]
            + [FailurePolicy.continueAll, .cancelRemaining].map { policy in
                Scene(
                    "Limit \(limit), \(policy): a failure beside another end is delivered before the end",
                    [start, end, endSecond]
                ) { Subject(count: 3, limit: limit, held: [0, 1], failing: [0], policy: policy) }
            }
    }

    private static let ends = (1...3).map { limit in
        Scene("Limit \(limit), with items that end while others are read: it goes on", [start, end, endSecond]) {
            Subject(count: 4, limit: limit, held: [0, 1])
        }
    }

    private static let cancelledRead = Scene(
        "An item that is not performed, because reading it cancels the run, is released before the end", [start, end]
    ) { Subject(count: 3, limit: 2, held: [0], last: 1) }

    @Test(
        "A run over a sequence ends once, and nothing is taken, delivered or kept after that",
        arguments: (1...2).flatMap(scenes) + ends + [cancelledRead])
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (100, 50)) }
}
#endif
