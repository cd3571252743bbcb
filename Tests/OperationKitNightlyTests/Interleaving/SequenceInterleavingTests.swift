#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over sequences whose workers are virtual threads, and those who do something to them, in many orders of their
/// steps.
@Suite("Interleavings of runs over sequences", .serialized, .takesTurns, .hangGuard)
struct SequenceInterleavingTests {
    private func tryOut(
        _ title: String, limit: Int, _ make: @escaping @Sendable () -> SequenceSubject,
        _ roles: [Role<SequenceSubject>], _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(
            "sequence, limit \(limit), \(title)", samples: (100, 50), { _ in make() }, roles, location)
    }

    private static let start = Role<SequenceSubject>("start") { $0.start() }
    private static let cancel = Role<SequenceSubject>("cancel") { $0.cancel() }

    @Test("Nothing is taken after a cancellation, and the run ends once", arguments: 1...2)
    func cancelDuringTheStart(limit: Int) async {
        await tryOut(
            "start, cancel", limit: limit, { SequenceSubject(count: 3, limit: limit) },
            [SequenceInterleavingTests.start, SequenceInterleavingTests.cancel])
    }

    @Test("Items that end while others are read let the run go on to the end", arguments: 1...3)
    func ends(limit: Int) async {
        await tryOut(
            "start, two ends", limit: limit, { SequenceSubject(count: 4, limit: limit, held: [0, 1]) },
            [SequenceInterleavingTests.start, Role("end 0") { $0.end(0) }, Role("end 1") { $0.end(1) }])
    }

    @Test("The end of an item against a cancellation", arguments: 1...2)
    func cancelDuringAnEnd(limit: Int) async {
        await tryOut(
            "start, end, cancel", limit: limit, { SequenceSubject(count: 3, limit: limit, held: [0]) },
            [SequenceInterleavingTests.start, Role("end") { $0.end(0) }, SequenceInterleavingTests.cancel])
    }

    @Test("An item that is not performed, because reading it cancels the run, is released before the end")
    func cancelDuringARead() async {
        await tryOut(
            "start, end, cancelled while it is read", limit: 2,
            { SequenceSubject(count: 3, limit: 2, held: [0], last: 1) },
            [SequenceInterleavingTests.start, Role("end") { $0.end(0) }])
    }

    @Test(
        "A failure that comes while another item ends is delivered before the end", arguments: 1...2,
        [FailurePolicy.continueAll, .cancelRemaining])
    func failureAgainstAnEnd(limit: Int, policy: FailurePolicy) async {
        await tryOut(
            "start, failure, end, \(policy)", limit: limit,
            { SequenceSubject(count: 3, limit: limit, held: [0, 1], failing: [0], policy: policy) },
            [SequenceInterleavingTests.start, Role("fail") { $0.end(0) }, Role("end") { $0.end(1) }])
    }

    @Test("A lost completion against a cancellation", arguments: 1...2)
    func lostCompletion(limit: Int) async {
        await tryOut(
            "start, loss, cancel", limit: limit, { SequenceSubject(count: 2, limit: limit, held: [0]) },
            [SequenceInterleavingTests.start, Role("lose") { $0.lose(0) }, SequenceInterleavingTests.cancel])
    }
}
#endif
