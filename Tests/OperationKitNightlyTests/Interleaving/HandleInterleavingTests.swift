#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Closures that lose what they were handed, call it, or register handlers by it, against a cancellation, in many orders
/// of their steps.
@Suite("Interleavings of handles", .serialized, .takesTurns, .hangGuard)
struct HandleInterleavingTests {
    private func tryOut(
        _ title: String, _ make: @escaping @Sendable () -> HandleSubject, _ roles: [Role<HandleSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(title, samples: (60, 40), { _ in make() }, roles, location)
    }

    private static let start = Role<HandleSubject>("start") { $0.start() }
    private static let drop = Role<HandleSubject>("drop") { $0.drop() }
    private static let finish = Role<HandleSubject>("finish") { $0.finish() }
    private static let cancel = Role<HandleSubject>("cancel") { $0.cancel() }

    @Test("A finish that is lost against a cancellation", arguments: [HandleSubject.Kind.block, .typed])
    func lossAgainstCancel(kind: HandleSubject.Kind) async {
        typealias Tests = HandleInterleavingTests
        await tryOut(
            "\(kind), loss, cancel", { HandleSubject(kind, copies: 1) }, [Tests.start, Tests.drop, Tests.cancel])
    }

    @Test(
        "One copy that is called, another one that is dropped, and a cancellation",
        arguments: [HandleSubject.Kind.block, .typed])
    func lossAgainstFinish(kind: HandleSubject.Kind) async {
        typealias Tests = HandleInterleavingTests
        await tryOut(
            "\(kind), drop, finish, cancel", { HandleSubject(kind, copies: 2) },
            [Tests.start, Tests.drop, Tests.finish, Tests.cancel])
    }

    @Test(
        "A finish that is lost against an outcome from outside, and a cancellation",
        arguments: [HandleSubject.Kind.block, .typed])
    func lossAgainstOutside(kind: HandleSubject.Kind) async {
        typealias Tests = HandleInterleavingTests
        await tryOut(
            "\(kind), loss, finish from outside, cancel", { HandleSubject(kind, copies: 1) },
            [Tests.start, Tests.drop, Role("outside") { $0.finishFromOutside() }, Tests.cancel])
    }

    @Test("Two registrations against a cancellation", arguments: HandleSubject.Kind.allCases)
    func registrationAgainstCancel(kind: HandleSubject.Kind) async {
        typealias Tests = HandleInterleavingTests
        await tryOut(
            "\(kind), register, cancel", { HandleSubject(kind, copies: 2, holdsCopy: true) },
            [
                Tests.start, Role("register a") { $0.register("a") }, Role("register b") { $0.register("b") },
                Tests.cancel,
            ])
    }

    @Test(
        "A registration whose copy is dropped after it, against a cancellation",
        arguments: [HandleSubject.Kind.block, .typed])
    func registrationAgainstLoss(kind: HandleSubject.Kind) async {
        typealias Tests = HandleInterleavingTests
        await tryOut(
            "\(kind), register, loss, cancel", { HandleSubject(kind, copies: 2) },
            [Tests.start, Role("register") { $0.register("a") }, Tests.drop, Tests.cancel])
    }
}
#endif
