import OperationKitTestSupport

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
