import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Everything that can happen to a life, so that tests can list and combine it.
enum LifecycleEvent: String, CaseIterable {
    case started, becameExecuting, gatesPassed, gateClosed, gateOpened, mainReturned, succeeded, failed
    case drained, ended, cancelled, marked
}

extension Lifecycle {
    /// Applies an event. Events that bring an outcome with them bring a fixed one here.
    ///
    /// - Returns: The actions that are due now, and whether a finish was accepted, or the gates go on.
    mutating func apply(_ event: LifecycleEvent) -> (actions: [Action], isAccepted: Bool?) {
        switch event {
        case .started: return (started().map { [$0] } ?? [], nil)
        case .becameExecuting: return (becameExecuting().map { [$0] } ?? [], nil)
        case .gatesPassed: return (gatesPassed().map { [$0] } ?? [], nil)
        case .gateClosed: return (gateClosed().map { [$0] } ?? [], nil)
        case .gateOpened: return ([], gateOpened())
        case .mainReturned: return (mainReturned().map { [$0] } ?? [], nil)
        case .succeeded:
            let (isAccepted, action) = finished(with: .success(()))
            return (action.map { [$0] } ?? [], isAccepted)
        case .failed:
            let (isAccepted, action) = finished(with: .failure(TestError.first))
            return (action.map { [$0] } ?? [], isAccepted)
        case .drained: return (drained(with: .failure(TestError.second)).map { [$0] } ?? [], nil)
        case .ended:
            ended()
            return ([], nil)
        case .cancelled: return (cancelled(reason: nil).map { [$0] } ?? [], nil)
        case .marked: return (superclassCancelled(), nil)
        }
    }

    /// A life to which all of this has happened, in this order.
    static func after(_ events: [LifecycleEvent], _ ending: Ending) -> Lifecycle {
        var lifecycle = Lifecycle(ending: ending)
        for event in events { _ = lifecycle.apply(event) }
        return lifecycle
    }

    /// The state as a short text: `executing`, `finishing(first)`.
    var stateText: String {
        switch state {
        case .pending(let outcome): "pending\(outcome.text)"
        case .starting(let outcome): "starting\(outcome.text)"
        case .executing(.passingGates): "passing"
        case .executing(.waiting): "waiting"
        case .executing(.onStack): "main"
        case .executing(.returned): "working"
        case .draining(let outcome, _): "draining\(outcome.text)"
        case .finishing(let outcome, _): "finishing\(Optional(outcome).text)"
        case .finished(let outcome): "finished\(Optional(outcome).text)"
        }
    }
}

extension Lifecycle.Outcome? {
    fileprivate var text: String {
        switch self {
        case nil: ""
        case .success?: "(success)"
        case .failure(let error)?: "(\(OperationKitTestSupport.text(error)))"
        }
    }
}

/// A place in a life: its name in the tables, and how to get there.
struct Situation: CustomTestStringConvertible, Sendable {
    let name: String
    let ending: Lifecycle.Ending
    let events: [LifecycleEvent]

    init(_ name: String, _ ending: Lifecycle.Ending, _ events: [LifecycleEvent]) {
        self.name = name
        self.ending = ending
        self.events = events
    }

    var lifecycle: Lifecycle { .after(events, ending) }
    var testDescription: String { "\(ending == .immediately ? "leaf" : "composite"), \(name)" }
}

extension Situation {
    private static let passing: [LifecycleEvent] = [.started, .becameExecuting]
    private static let waiting = passing + [.gateClosed]
    private static let main = passing + [.gatesPassed]
    private static let working = main + [.mainReturned]

    /// Where leaves and composites can be until their outcome is known.
    private static func open(_ ending: Lifecycle.Ending) -> [Situation] {
        [
            Situation("pending", ending, []),
            Situation("pending, outcome", ending, [.succeeded]),
            Situation("pending, marking", ending, [.cancelled]),
            Situation("pending, cancelled", ending, [.cancelled, .marked]),
            Situation("pending, outcome, cancelled", ending, [.succeeded, .cancelled, .marked]),
            Situation("starting", ending, [.started]),
            Situation("starting, outcome", ending, [.started, .succeeded]),
            Situation("starting, marking", ending, [.started, .cancelled]),
            Situation("starting, cancelled", ending, [.started, .cancelled, .marked]),
            Situation("passing", ending, passing),
            Situation("passing, marking", ending, passing + [.cancelled]),
            Situation("passing, cancelled", ending, passing + [.cancelled, .marked]),
            Situation("waiting", ending, waiting),
            Situation("waiting, marking", ending, waiting + [.cancelled]),
            Situation("main", ending, main),
            Situation("main, marking", ending, main + [.cancelled]),
            Situation("main, cancelled", ending, main + [.cancelled, .marked]),
            Situation("working", ending, working),
            Situation("working, marking", ending, working + [.cancelled]),
            Situation("working, marking since main", ending, main + [.cancelled, .mainReturned]),
            Situation("working, cancelled", ending, working + [.cancelled, .marked]),
        ]
    }

    static let leaf =
        open(.immediately) + [
            Situation("finishing, never executed", .immediately, [.cancelled, .marked, .started]),
            Situation("finishing, never executed, marking", .immediately, [.cancelled, .started]),
            Situation("finishing before main", .immediately, passing + [.succeeded]),
            Situation("finishing before main, marking", .immediately, passing + [.cancelled, .gatesPassed]),
            Situation("finishing before main, cancelled", .immediately, passing + [.cancelled, .marked, .gatesPassed]),
            Situation("finishing, waited", .immediately, waiting + [.succeeded]),
            Situation("finishing, waited, marking", .immediately, waiting + [.cancelled, .succeeded]),
            Situation("finishing, waited, cancelled", .immediately, waiting + [.cancelled, .marked]),
            Situation("finishing in main", .immediately, main + [.succeeded]),
            Situation("finishing", .immediately, working + [.succeeded]),
            Situation("finishing, marking", .immediately, working + [.cancelled, .succeeded]),
            Situation("finishing, cancelled", .immediately, working + [.cancelled, .marked, .succeeded]),
            Situation("finished in main", .immediately, main + [.succeeded, .ended]),
            Situation("finished", .immediately, working + [.succeeded, .ended]),
            Situation("finished, cancelled", .immediately, [.cancelled, .marked, .started, .ended]),
        ]

    static let composite =
        open(.afterChildren) + [
            Situation("draining, never executed", .afterChildren, [.cancelled, .marked, .started]),
            Situation("draining, never executed, marking", .afterChildren, [.cancelled, .started]),
            Situation("draining, outcome, never executed", .afterChildren, [.succeeded, .started]),
            Situation("draining before main", .afterChildren, passing + [.succeeded]),
            Situation("draining before main, marking", .afterChildren, passing + [.cancelled, .succeeded]),
            Situation(
                "draining before main, cancelled", .afterChildren, passing + [.cancelled, .marked, .gatesPassed]),
            Situation("draining, waited", .afterChildren, waiting + [.succeeded]),
            Situation("draining, waited, marking", .afterChildren, waiting + [.cancelled, .succeeded]),
            Situation("draining, waited, cancelled", .afterChildren, waiting + [.cancelled, .marked]),
            Situation("draining in main", .afterChildren, main + [.succeeded]),
            Situation("draining", .afterChildren, working + [.succeeded]),
            Situation("draining, marking", .afterChildren, working + [.cancelled, .succeeded]),
            Situation("finishing", .afterChildren, working + [.drained]),
            Situation("finishing, marking", .afterChildren, working + [.cancelled, .drained]),
            Situation("finished", .afterChildren, working + [.drained, .ended]),
        ]

    static let all = leaf + composite
}
