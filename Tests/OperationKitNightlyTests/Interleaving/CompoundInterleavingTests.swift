#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// A compound whose private queue starts its operations on virtual threads, and those who do something to it or its
/// children, in many orders of their steps.
@Suite("Interleavings of compounds", .serialized, .takesTurns, .hangGuard) struct CompoundInterleavingTests {
    private func tryOut(
        _ title: String, _ make: @escaping @Sendable () -> CompoundSubject, _ roles: [Role<CompoundSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(title, samples: (150, 100), { _ in make() }, roles, location)
    }

    @Test("A compound that is cancelled while it is started cancels and finishes every child")
    func cancelDuringTheStart() async {
        await tryOut(
            "start, cancel", { CompoundSubject(children: 2) },
            [Role("start") { $0.compound.start() }, Role("cancel") { $0.cancel() }])
    }

    @Test("A compound that is finished while it is started ends with that outcome, if accepted")
    func finishDuringTheStart() async {
        await tryOut(
            "start, finish", { CompoundSubject(children: 2, held: [0]) },
            [Role("start") { $0.compound.start() }, Role("finish") { $0.finishFromOutside() }])
    }

    @Test("A child that is added while its compound is started runs, or is rejected after the end")
    func additionDuringTheStart() async {
        await tryOut(
            "start, add", { CompoundSubject(children: 1) },
            [Role("start") { $0.compound.start() }, Role("add") { $0.add() }])
    }

    @Test("A child that is added while its dependency ends runs after it, or is rejected after the end")
    func additionDuringAnEnd() async {
        await tryOut(
            "start, end, add", { CompoundSubject(children: 1, held: [0]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("add") { $0.add(after: $0.children[0]) },
            ])
    }

    @Test("No child starts after a cancellation that comes while another child ends") func cancelDuringAnEnd() async {
        await tryOut(
            "start, end, cancel", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("cancel") { $0.cancel() },
            ])
    }

    @Test("A cancellation reaches every child of a compound that runs while a child of it ends")
    func cancelWhileRunning() async {
        await tryOut(
            "end, cancel",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)])
                subject.compound.start()
                return subject
            }, [Role("end") { $0.end(0) }, Role("cancel") { $0.cancel() }])
    }

    @Test("Each of two concurrent cancellations has reached every child when it returns")
    func twoCancellations() async {
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

    @Test("Cancelling an outer compound reaches the children of one that another thread is cancelling")
    func outerCancellation() async {
        await tryOut(
            "cancellations inside and around",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)], isNested: true)
                subject.start()
                return subject
            }, [Role("cancel") { $0.cancel() }, Role("cancel around") { $0.cancel(around: true) }])
    }

    @Test("A cancellation reaches every child of a compound that another thread finishes")
    func finishAgainstCancel() async {
        await tryOut(
            "finish, cancel",
            {
                let subject = CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)])
                subject.start()
                return subject
            },
            [Role("finish") { $0.finishFromOutside() }, Role("cancel") { $0.cancel() }])
    }

    @Test("A child that is cancelled while its compound starts does not wait for its dependency")
    func cancelledChild() async {
        await tryOut(
            "start, cancel a child", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [Role("start") { $0.compound.start() }, Role("cancel") { $0.children[1].cancel() }])
    }

    @Test("A child that is cancelled while its dependency ends is not forgotten")
    func cancelledChildAgainstAnEnd() async {
        await tryOut(
            "start, end, cancel a child", { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)]) },
            [
                Role("start") { $0.compound.start() }, Role("end") { $0.end(0) },
                Role("cancel") { $0.children[1].cancel() },
            ])
    }

    @Test("Children that end at the same time never exceed a limit of 1") func limit() async {
        await tryOut(
            "limit 1, two ends", { CompoundSubject(children: 3, held: [0, 1], limit: 1) },
            [Role("start") { $0.compound.start() }, Role("end 0") { $0.end(0) }, Role("end 1") { $0.end(1) }])
    }

    @Test("A failure that comes during an addition leaves no child unfinished") func failureAgainstAnAddition() async {
        await tryOut(
            "failure, add", { CompoundSubject(children: 2, held: [0], policy: .cancelRemaining) },
            [Role("start") { $0.compound.start() }, Role("fail") { $0.end(0, .first) }, Role("add") { $0.add() }])
    }

    @Test("A failure that comes while another child ends and a third one is added leaves no child unfinished")
    func failureAgainstAnEndAndAnAddition() async {
        await tryOut(
            "failure, end, add", { CompoundSubject(children: 2, held: [0, 1], policy: .cancelRemaining) },
            [
                Role("start") { $0.compound.start() }, Role("fail") { $0.end(0, .first) }, Role("end") { $0.end(1) },
                Role("add") { $0.add() },
            ])
    }

    @Test("A child whose external dependency ends while the compound is started and cancelled is not forgotten")
    func externalDependency() async {
        await tryOut(
            "start, end external",
            {
                let subject = CompoundSubject(children: 1)
                subject.outer.start()
                subject.children[0].addDependency(subject.outer)
                return subject
            },
            [
                Role("start") { $0.compound.start() }, Role("end external") { $0.outer.finish() },
                Role("cancel") { $0.cancel() },
            ])
    }

    @Test("A reason of a compound inside another one against its start and the end of its child")
    func nestedReason() async {
        await tryOut(
            "start, end, reason inside",
            { CompoundSubject(children: 2, held: [0], dependencies: [(1, 0)], isNested: true) },
            [
                Role("start") { $0.start() }, Role("end") { $0.end(0) },
                Role("reason") { $0.cancelWithReason() },
            ])
    }

    @Test("A failure that two children in a row require, against the start, and a cancellation or an addition")
    func blockedChildren() async {
        let cancel = Role<CompoundSubject>("cancel a child") { $0.children[1].cancel() }
        let add = Role<CompoundSubject>("add") { subject in
            subject.late.requireSuccess(of: subject.children[0])
            subject.add(subject.late)
        }
        for role in [cancel, add] {
            await tryOut(
                "start, failure, \(role.name)",
                { CompoundSubject(children: 3, held: [0], requirements: [(1, 0), (2, 1)]) },
                [Role("start") { $0.start() }, Role("fail") { $0.end(0, .first) }, role])
        }
    }

    @Test("A failure outside that two children require, against the start and the cancellation of one of them")
    func blockedFromOutside() async {
        for policy in [FailurePolicy.continueAll, .cancelRemaining] {
            await tryOut(
                "start, failure outside, \(policy)",
                {
                    let subject = CompoundSubject(children: 3, requirements: [(0, -1), (2, -1)], policy: policy)
                    subject.outer.start()
                    return subject
                },
                [
                    Role("start") { $0.start() }, Role("fail outside") { $0.outer.finish(withError: TestError.first) },
                    Role("cancel a child") { $0.children[0].cancel() },
                ])
        }
    }

    @Test("A compound that is paused by its limit and suspended while it is started runs its children afterward")
    func limitAndSuspension() async {
        await tryOut(
            "limit, pause", { CompoundSubject(children: 2) },
            [
                Role("start") { $0.compound.start() }, Role("limit") { $0.compound.maxConcurrentOperationCount = 0 },
                Role("pause") { $0.compound.isSuspended = true },
            ])
    }
}
#endif
