#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Closures that lose what they were handed, call it, or register handlers by it, against a cancellation, in many orders
/// of their steps.
@Suite("Interleavings of handles", .serialized, .takesTurns, .hangGuard)
struct HandleInterleavingTests {
    typealias Subject = HandleSubject

    private static let start = Role<Subject>("start") { $0.start() }
    private static let drop = Role<Subject>("drop") { $0.drop() }
    private static let finish = Role<Subject>("finish") { $0.finish() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let outside = Role<Subject>("outside") { $0.finishFromOutside() }
    private static let register = Role<Subject>("register a") { $0.register("a") }
    private static let registerSecond = Role<Subject>("register b") { $0.register("b") }

    private static func scenes(of kind: Subject.Kind) -> [Scene<Subject>] {
        [
            Scene("\(kind): a finish that is lost", [start, drop, cancel]) { Subject(kind, copies: 1) },
            Scene("\(kind): one copy that is called, another one that is dropped", [start, drop, finish, cancel]) {
                Subject(kind, copies: 2)
            },
            Scene("\(kind): a finish that is lost, an outcome from outside", [start, drop, outside, cancel]) {
                Subject(kind, copies: 1)
            },
            Scene("\(kind): a registration whose copy is dropped after it", [start, register, drop, cancel]) {
                Subject(kind, copies: 2)
            },
        ]
    }

    private static let registrations = Subject.Kind.allCases.map { kind in
        Scene("\(kind): two registrations", [start, register, registerSecond, cancel]) {
            Subject(kind, copies: 2, holdsCopy: true)
        }
    }

    @Test(
        "A closure that is cancelled ends its operation once, and its handlers are called once",
        arguments: [Subject.Kind.block, .typed].flatMap(scenes) + registrations)
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (60, 40)) }
}
#endif
