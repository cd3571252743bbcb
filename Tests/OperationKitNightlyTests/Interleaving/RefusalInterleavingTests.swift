#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Additions that are refused because they would close a cycle, against others and the start, in many orders of their
/// steps.
@Suite("Interleavings of refused additions", .serialized, .takesTurns, .hangGuard) struct RefusalInterleavingTests {
    private func tryOut(
        _ title: String, _ roles: [Role<CompoundSubject>], _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(
            title, samples: (30, 20),
            { _ in
                let subject = CompoundSubject(children: 2)
                subject.children[0].addDependency(subject.outer)
                subject.outer.addDependency(subject.children[0])
                return subject
            }, roles, location)
    }

    private static let start = Role<CompoundSubject>("start") { $0.compound.start() }
    private static let refused = Role<CompoundSubject>("refused") { $0.addRefused($0.outer) }

    @Test("A refused addition leaves a compound that starts just then as it was")
    func againstTheStart() async {
        await tryOut("refusal, start", [RefusalInterleavingTests.start, RefusalInterleavingTests.refused])
    }

    @Test("A refused addition leaves the numbers of children as they were, whatever else is added")
    func againstAnotherAddition() async {
        await tryOut(
            "refusal, addition that fails",
            [
                RefusalInterleavingTests.start, RefusalInterleavingTests.refused,
                Role("add") {
                    $0.late.finish(withError: TestError.first)
                    $0.add($0.late)
                },
            ])
    }

    @Test("Two refused additions of the same operation leave it as it was")
    func againstAnotherRefusal() async {
        await tryOut(
            "two refusals",
            [
                RefusalInterleavingTests.refused, Role("refused too") { $0.addRefused($0.outer) },
                RefusalInterleavingTests.start,
            ])
    }
}
#endif
