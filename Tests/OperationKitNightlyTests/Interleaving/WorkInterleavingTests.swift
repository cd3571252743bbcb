#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over collections, macros and waterfalls whose workers and private queues are virtual threads, and those who do
/// something to them, in many orders of their steps.
@Suite("Interleavings of runs", .serialized, .takesTurns, .hangGuard) struct WorkInterleavingTests {
    private func tryOut(
        _ title: String, _ kind: WorkSubject.Kind, _ make: @escaping @Sendable (WorkSubject.Kind) -> WorkSubject,
        _ roles: [Role<WorkSubject>], _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems("\(kind), \(title)", samples: (100, 50), { _ in make(kind) }, roles, location)
    }

    private static let start = Role<WorkSubject>("start") { $0.operation.start() }
    private static let cancel = Role<WorkSubject>("cancel") { $0.cancel() }

    @Test(
        "A run that is cancelled while it is started ends once and starts no further unit",
        arguments: WorkSubject.Kind.allCases
    )
    func cancelDuringTheStart(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, cancel", kind, { WorkSubject($0, units: 3) },
            [WorkInterleavingTests.start, WorkInterleavingTests.cancel])
    }

    @Test(
        "A run that is finished while it is started ends with that outcome, if accepted",
        arguments: WorkSubject.Kind.allCases
    )
    func finishDuringTheStart(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, finish", kind, { WorkSubject($0, units: 2, held: [0]) },
            [WorkInterleavingTests.start, Role("finish") { $0.finishFromOutside() }])
    }

    @Test("The end of a unit against a cancellation with a reason", arguments: WorkSubject.Kind.allCases)
    func reason(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, end, reason", kind, { WorkSubject($0, units: 2, held: [0]) },
            [
                WorkInterleavingTests.start, Role("end") { $0.end(0) },
                Role("reason") { $0.cancel(hasReason: true) },
            ])
    }

    @Test("A run that is cancelled while a unit of it ends starts no further one", arguments: WorkSubject.Kind.allCases)
    func cancelDuringAnEnd(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, end, cancel", kind, { WorkSubject($0, units: 3, held: [0]) },
            [WorkInterleavingTests.start, Role("end") { $0.end(0) }, WorkInterleavingTests.cancel])
    }

    @Test("Units that end at the same time let the run go on through all units", arguments: WorkSubject.Kind.allCases)
    func twoEnds(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, two ends", kind, { WorkSubject($0, units: 3, held: [0, 1]) },
            [WorkInterleavingTests.start, Role("end 0") { $0.end(0) }, Role("end 1") { $0.end(1) }])
    }

    @Test("A failure that comes while another unit ends is not lost", arguments: WorkSubject.Kind.allCases)
    func failureAgainstAnEnd(kind: WorkSubject.Kind) async {
        await tryOut(
            "start, failure, end", kind, { WorkSubject($0, units: 2, held: [0, 1], failing: [0]) },
            [WorkInterleavingTests.start, Role("fail") { $0.end(0) }, Role("end") { $0.end(1) }])
    }

    @Test("A waterfall that is suspended and resumed while it is started runs all its jobs") func suspension() async {
        await tryOut(
            "start, pause, resume", .waterfall, { WorkSubject($0, units: 2) },
            [
                WorkInterleavingTests.start, Role("pause") { ($0.operation as? Waterfall<Int, Int>)?.suspend() },
                Role("resume") { ($0.operation as? Waterfall<Int, Int>)?.resume() },
            ])
    }
}
#endif
