#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over collections, macros and waterfalls whose workers and private queues are virtual threads, and those who do
/// something to them, in many orders of their steps.
@Suite("Interleavings of runs", .serialized, .takesTurns, .hangGuard) struct WorkInterleavingTests {
    typealias Subject = WorkSubject

    private static let start = Role<Subject>("start") { $0.operation.start() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let finish = Role<Subject>("finish") { $0.finishFromOutside() }
    private static let reason = Role<Subject>("reason") { $0.cancel(hasReason: true) }
    private static let end = Role<Subject>("end") { $0.end(0) }
    private static let endSecond = Role<Subject>("end the second") { $0.end(1) }
    private static let pause = Role<Subject>("pause") { ($0.operation as? Waterfall<Int, Int>)?.suspend() }
    private static let resume = Role<Subject>("resume") { ($0.operation as? Waterfall<Int, Int>)?.resume() }

    private static func scenes(of kind: Subject.Kind) -> [Scene<Subject>] {
        [
            Scene("\(kind), cancelled while it is started: no further unit starts", [start, cancel]) {
                Subject(kind, units: 3)
            },
            Scene("\(kind), finished while it is started: it ends with that outcome, if accepted", [start, finish]) {
                Subject(kind, units: 2, held: [0])
            },
            Scene("\(kind), cancelled with a reason while a unit ends", [start, end, reason]) {
                Subject(kind, units: 2, held: [0])
            },
            Scene("\(kind), cancelled while a unit ends: no further one starts", [start, end, cancel]) {
                Subject(kind, units: 3, held: [0])
            },
            Scene("\(kind), with units that end at the same time: it goes on through all", [start, end, endSecond]) {
                Subject(kind, units: 3, held: [0, 1])
            },
            Scene(
                "\(kind), with a unit that fails while another one ends: no failure is lost", [start, end, endSecond]
            ) {
                Subject(kind, units: 2, held: [0, 1], failing: [0])
            },
        ]
    }

    private static let suspension = Scene<Subject>(
        "A waterfall that is suspended and resumed while it is started runs all its jobs", [start, pause, resume]
    ) { Subject(.waterfall, units: 2) }

    @Test(
        "A run ends once, with the right outcome, after all units that may start",
        arguments: Subject.Kind.allCases.flatMap(scenes) + [suspension])
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (100, 50)) }
}
#endif
