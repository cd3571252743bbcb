#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Children with a state of their own before or while a compound gets them, and children that reach for the private
/// queue, in many orders of their steps.
@Suite("Interleavings of children with a state of their own", .serialized, .takesTurns, .hangGuard)
struct ChildStateInterleavingTests {
    private func tryOut(
        _ title: String, _ make: @escaping @Sendable () -> CompoundSubject, _ roles: [Role<CompoundSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(title, samples: (30, 20), { _ in make() }, roles, location)
    }

    /// What another thread does to a child.
    enum State: CaseIterable {
        case cancelled, started, finished, givenAnOutcome

        func reach(_ child: ScriptedOperation, of subject: CompoundSubject) {
            switch self {
            case .cancelled: child.cancel()
            case .started: subject.startByHand(child)
            case .finished:
                child.cancel()
                subject.startByHand(child)
            case .givenAnOutcome: subject.end(child)
            }
        }
    }

    private static let start = Role<CompoundSubject>("start") { $0.compound.start() }

    @Test("A child whose state makes its dependency irrelevant while it is added", arguments: State.allCases)
    func changedWhileItIsAdded(state: State) async {
        for isRunning in [false, true] {
            await tryOut(
                "add, \(state), \(isRunning ? "running" : "not begun")",
                {
                    let subject = CompoundSubject(children: 1, held: [0], holdsLate: true)
                    subject.late.addDependency(subject.outer)
                    if isRunning { subject.start() }
                    return subject
                },
                (isRunning ? [] : [ChildStateInterleavingTests.start]) + [
                    Role("add") { $0.add($0.late) }, Role("\(state)") { state.reach($0.late, of: $0) },
                ])
        }
    }

    @Test("A child whose state makes its dependency irrelevant against the start", arguments: State.allCases)
    func changedAgainstTheStart(state: State) async {
        await tryOut(
            "start, \(state)",
            {
                let subject = CompoundSubject(children: 2, held: [1])
                subject.children[1].addDependency(subject.outer)
                return subject
            }, [ChildStateInterleavingTests.start, Role("\(state)") { state.reach($0.children[1], of: $0) }])
    }

    @Test("A child that cancels all operations of the private queue ends with its compound, and so do the others")
    func childrenThatCancelTheQueue() async {
        for limit in [-1, 1] {
            await tryOut(
                "cancel the queue, limit \(limit)",
                {
                    CompoundSubject(children: 3, dependencies: [(2, 0)], limit: limit) { _ in
                        VirtualThreadQueue.ofCurrentVirtualThread?.cancelAllOperations()
                    }
                }, [ChildStateInterleavingTests.start, Role("add") { $0.add() }])
        }
    }

    @Test("A pause while the last child ends leaves nothing behind", arguments: [-1, 1])
    func pausedAtTheEnd(limit: Int) async {
        await tryOut(
            "pause, last end, limit \(limit)", { CompoundSubject(children: 2, held: [1], limit: limit) },
            [
                ChildStateInterleavingTests.start, Role("end") { $0.end(1) },
                Role("pause") { $0.compound.isSuspended = true },
            ])
    }

    @Test("A limit of 0 while the last child ends leaves nothing behind")
    func limitedAtTheEnd() async {
        await tryOut(
            "limit 0, last end", { CompoundSubject(children: 2, held: [1]) },
            [
                ChildStateInterleavingTests.start, Role("end") { $0.end(1) },
                Role("limit") { $0.compound.maxConcurrentOperationCount = 0 },
            ])
    }
}
#endif
