#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A compound whose private queue starts its operations on virtual threads, and those who do something to it or its
/// children, in many orders of their steps.
@Suite("Interleavings of compounds", .serialized, .takesTurns, .hangGuard) struct CompoundInterleavingTests {
    typealias Subject = CompoundSubject

    private static let start = Role<Subject>("start") { $0.start() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let cancelToo = Role<Subject>("cancel too") { $0.cancel() }
    private static let cancelAround = Role<Subject>("cancel around") { $0.cancel(around: true) }
    private static let cancelChild = Role<Subject>("cancel a child") { $0.children[1].cancel() }
    private static let finish = Role<Subject>("finish") { $0.finishFromOutside() }
    private static let end = Role<Subject>("end") { $0.end(0) }
    private static let endSecond = Role<Subject>("end the second") { $0.end(1) }
    private static let fail = Role<Subject>("fail") { $0.end(0, .first) }
    private static let report = Role<Subject>("report") { $0.report(0) }
    private static let reportAndEnd = Role<Subject>("report and end") { $0.report(0, ends: true) }
    private static let add = Role<Subject>("add") { $0.add() }
    private static let open = Role<Subject>("open") { $0.open() }
    private static let pause = Role<Subject>("pause") { $0.compound.isSuspended = true }
    private static let limit = Role<Subject>("limit to 0") { $0.compound.maxConcurrentOperationCount = 0 }

    /// Two children, of which the second one waits for the first one, which the test ends.
    private static func pair(isRunning: Bool = false, isNested: Bool = false) -> Subject {
        let subject = Subject(children: 2, held: [0], dependencies: [(1, 0)], isNested: isNested)
        if isRunning { subject.start() }
        return subject
    }

    private static let cancellations: [Scene<Subject>] = [
        Scene("Cancelled while it is started: every child is cancelled", [start, cancel]) { Subject(children: 2) },
        Scene("Finished while it is started: it ends with that outcome, if accepted", [start, finish]) {
            Subject(children: 2, held: [0])
        },
        Scene("Cancelled while a child ends: no other one starts", [start, end, cancel]) { pair() },
        Scene("Cancelled while it runs and a child ends: every child is cancelled", [end, cancel]) {
            pair(isRunning: true)
        },
        Scene("Cancelled twice: both have reached every child", [cancel, cancelToo]) { pair(isRunning: true) },
        Scene("Cancelled twice before the start", [cancel, cancelToo]) { pair() },
        Scene("Cancelled, and so is the one around it", [cancel, cancelAround]) {
            pair(isRunning: true, isNested: true)
        },
        Scene("Finished and cancelled", [finish, cancel]) { pair(isRunning: true) },
        Scene("A reason inside another compound", [start, end, Role("reason") { $0.cancelWithReason() }]) {
            pair(isNested: true)
        },
        Scene("A child that is cancelled does not wait", [start, cancelChild]) { pair() },
        Scene("A child is cancelled while its dependency ends", [start, end, cancelChild]) { pair() },
        Scene("An external dependency that ends", [start, Role("end external") { $0.outer.finish() }, cancel]) {
            let subject = Subject(children: 1)
            subject.outer.start()
            subject.children[0].addDependency(subject.outer)
            return subject
        },
    ]

    private static let additions: [Scene<Subject>] = [
        Scene("A child that is added runs, or is rejected after the end", [start, add]) { Subject(children: 1) },
        Scene("Added while its dependency ends", [start, end, Role("add") { $0.add(after: $0.children[0]) }]) {
            Subject(children: 1, held: [0])
        },
        Scene("A failure during an addition", [start, fail, add]) {
            Subject(children: 2, held: [0], policy: .cancelRemaining)
        },
        Scene("A failure during an end and an addition", [start, fail, endSecond, add]) {
            Subject(children: 2, held: [0, 1], policy: .cancelRemaining)
        },
    ]

    private static let limits: [Scene<Subject>] =
        [
            Scene("A limit of 1 is never exceeded", [start, end, endSecond]) {
                Subject(children: 3, held: [0, 1], limit: 1)
            },
            Scene("A limit is not exceeded beside a child that is not ready by itself", [start, open]) {
                Subject(children: 3, held: [1, 2], unready: [0], limit: 2)
            },
            Scene("Limited to 0 and suspended while it is started", [start, limit, pause]) { Subject(children: 2) },
            Scene("Limited to 0 while a child ends", [start, endSecond, limit]) { Subject(children: 2, held: [1]) },
        ]
        + [-1, 1].flatMap { limit in
            [
                Scene("Paused while the last child ends, limit \(limit)", [start, endSecond, pause]) {
                    Subject(children: 2, held: [1], limit: limit)
                },
                Scene("Children that cancel the private queue, limit \(limit)", [start, add]) {
                    Subject(children: 3, dependencies: [(2, 0)], limit: limit) { _ in
                        VirtualThreadQueue.ofCurrentVirtualThread?.cancelAllOperations()
                    }
                },
            ]
        }

    private static let requirements: [Scene<Subject>] =
        [
            cancelChild,
            Role("add") { subject in
                subject.late.requireSuccess(of: subject.children[0])
                subject.add(subject.late)
            },
        ]
        .map { role in
            Scene("A failure that two children in a row require, \(role.name)", [start, fail, role]) {
                Subject(children: 3, held: [0], requirements: [(1, 0), (2, 1)])
            }
        }
        + [FailurePolicy.continueAll, .cancelRemaining].map { policy in
            Scene(
                "A failure outside that two children require, \(policy)",
                [
                    start, Role("fail outside") { $0.outer.finish(withError: TestError.first) },
                    Role("cancel a child") { $0.children[0].cancel() },
                ]
            ) {
                let subject = Subject(children: 3, requirements: [(0, -1), (2, -1)], policy: policy)
                subject.outer.start()
                return subject
            }
        }

    private static let progress: [Scene<Subject>] = [
        ("A report against the end of its child", [report, end]),
        ("A report against the failure of its child", [report, fail]),
        ("A report, and an end, against an addition", [reportAndEnd, Role("add") { $0.add($0.late) }]),
    ].map { title, roles in
        Scene(title, roles) {
            let subject = Subject(children: 2, held: [0, 1], isProgressObserved: true)
            subject.start()
            return subject
        }
    }

    @Test(
        "A compound ends once, after its children, of which none is forgotten or begun too late, and all work is counted",
        arguments: cancellations + additions + limits + requirements + progress)
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (60, 30)) }

    // MARK: - Children with a state of their own

    /// What another thread does to a child.
    enum State: CaseIterable {
        case cancelled, started, finished, givenAnOutcome

        func reach(_ child: ScriptedOperation, of subject: Subject) {
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

    private static let states: [Scene<Subject>] = State.allCases.flatMap { state in
        [false, true].map { isRunning in
            Scene(
                "\(state) while it is added, \(isRunning ? "running" : "not begun")",
                (isRunning ? [] : [start])
                    + [Role("add") { $0.add($0.late) }, Role("\(state)") { state.reach($0.late, of: $0) }]
            ) {
                let subject = Subject(children: 1, held: [0], holdsLate: true)
                subject.late.addDependency(subject.outer)
                if isRunning { subject.start() }
                return subject
            }
        }
            + [
                Scene("\(state) during the start", [start, Role("\(state)") { state.reach($0.children[1], of: $0) }]) {
                    let subject = Subject(children: 2, held: [1])
                    subject.children[1].addDependency(subject.outer)
                    return subject
                }
            ]
    }

    @Test("A child whose state makes its dependency irrelevant is not forgotten", arguments: states)
    private func stateOfAChild(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (30, 20)) }

    // MARK: - Refused additions

    private static let refused = Role<Subject>("refused") { $0.addRefused($0.outer) }

    private static let refusals: [Scene<Subject>] = [
        ("during the start", []),
        ("during an addition that fails", [Role("add") { $0.add($0.late, failing: true) }]),
        ("twice", [Role("refused too") { $0.addRefused($0.outer) }]),
    ].map { title, roles in
        Scene(title, [start, refused] + roles) {
            let subject = Subject(children: 2)
            subject.children[0].addDependency(subject.outer)
            subject.outer.addDependency(subject.children[0])
            return subject
        }
    }

    @Test(
        "An addition that would close a cycle leaves the compound and the operation as they were", arguments: refusals)
    private func refusedAddition(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (30, 20)) }
}
#endif
