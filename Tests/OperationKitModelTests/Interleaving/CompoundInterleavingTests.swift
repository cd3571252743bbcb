#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// A compound whose private queue starts its operations on virtual threads, and those who do something to it or its
/// children, in many orders of their steps.
@Suite("Every order of steps, compounds", .serialized, .takesTurns, .hangGuard) struct CompoundInterleavingTests {
    private func tryOut(
        _ title: String, _ make: @escaping @Sendable () -> CompoundSubject, _ roles: [Role<CompoundSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(title, samples: (150, 100), { _ in make() }, roles, location)
    }

    @Test func startAgainstCancel() async {
        await tryOut(
            "start, cancel", { CompoundSubject(children: 2) },
            [Role("start") { $0.compound.start() }, Role("cancel") { $0.cancel() }])
    }

    @Test func startAgainstFinishFromOutside() async {
        await tryOut(
            "start, finish", { CompoundSubject(children: 2, held: [0]) },
            [Role("start") { $0.compound.start() }, Role("finish") { $0.finishFromOutside() }])
    }

    @Test func startAgainstAddition() async {
        await tryOut(
            "start, add", { CompoundSubject(children: 1) },
            [Role("start") { $0.compound.start() }, Role("add") { $0.add() }])
    }

    @Test func theEndOfAChildAgainstAnAdditionAfterIt() async {
        await tryOut(
            "start, end, add", { CompoundSubject(children: 1, held: [0]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("add") { $0.add(after: $0.children[0]) },
            ])
    }

    @Test func theEndOfAChildAgainstCancel() async {
        await tryOut(
            "start, end, cancel", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("cancel") { $0.cancel() },
            ])
    }

    @Test func cancelReachesEveryChildOfACompoundThatRuns() async {
        await tryOut(
            "end, cancel",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)])
                subject.compound.start()
                return subject
            }, [Role("end") { $0.end(0) }, Role("cancel") { $0.cancel() }])
    }

    @Test func twoWhoCancelBothReachEveryChildBeforeTheyReturn() async {
        for isRunning in [false, true] {
            await tryOut(
                "two cancellations, \(isRunning ? "running" : "not begun")",
                {
                    let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)])
                    if isRunning { subject.start() }
                    return subject
                }, [Role("cancel") { $0.cancel() }, Role("cancel too") { $0.cancel() }])
        }
    }

    @Test func aCancellationAroundReachesTheChildrenOfACompoundThatSomebodyIsCancelling() async {
        await tryOut(
            "cancellations inside and around",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)], isNested: true)
                subject.start()
                return subject
            }, [Role("cancel") { $0.cancel() }, Role("cancel around") { $0.cancel(around: true) }])
    }

    @Test func aFinishFromOutsideAgainstCancelReachesEveryChild() async {
        await tryOut(
            "finish, cancel",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)])
                subject.start()
                return subject
            },
            [Role("finish") { $0.finishFromOutside() }, Role("cancel") { $0.cancel() }])
    }

    @Test func aChildThatIsCancelledByItselfEndsBeforeTheOneThatItWaitsFor() async {
        await tryOut(
            "start, cancel a child", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [Role("start") { $0.compound.start() }, Role("cancel") { $0.children[1].cancel() }])
    }

    @Test func aChildThatIsCancelledByItselfAgainstTheEndOfTheOneBeforeIt() async {
        await tryOut(
            "start, end, cancel a child", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("cancel") { $0.children[1].cancel() },
            ])
    }

    @Test func twoChildrenWithALimitOfOne() async {
        await tryOut(
            "limit 1, two ends", { CompoundSubject(children: 3, held: [0, 1], limit: 1) },
            [Role("start") { $0.compound.start() }, Role("end 0") { $0.end(0) }, Role("end 1") { $0.end(1) }])
    }

    @Test func aFailureAgainstAnEndAndAnAddition() async {
        await tryOut(
            "failure, add", { CompoundSubject(children: 2, held: [0], policy: .cancelRemaining) },
            [Role("start") { $0.compound.start() }, Role("fail") { $0.end(0, .first) }, Role("add") { $0.add() }])
    }

    @Test func anOperationOutsideThatAChildWaitsFor() async {
        await tryOut(
            "start, end outside",
            {
                let subject = CompoundSubject(children: 1)
                subject.outer.start()
                subject.children[0].addDependency(subject.outer)
                return subject
            },
            [
                Role("start") { $0.compound.start() }, Role("end outside") { $0.outer.finish() },
                Role("cancel") { $0.cancel() },
            ])
    }

    @Test func theLimitAndAPauseAgainstTheStart() async {
        await tryOut(
            "limit, pause", { CompoundSubject(children: 2) },
            [
                Role("start") { $0.compound.start() }, Role("limit") { $0.compound.maxConcurrentOperationCount = 0 },
                Role("pause") { $0.compound.isSuspended = true },
            ])
    }
}
#endif
