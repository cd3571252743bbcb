#if DEBUG || TESTABLE
@testable package import OperationKit

/// A gate that takes time until the test opens it, and writes down what is called on it.
package final class HeldGate: StartGate {
    private enum State {
        case idle
        case waiting(WeakReference<AsyncOperation>)
        case answered((any Error)?)
    }

    package let order: GateOrder
    private let name: String
    private let log: EventLog
    private let willWithdraw: @Sendable () -> Void
    private let state = Locked(State.idle)

    package init(
        _ name: String = "gate", order: GateOrder = .first, _ log: EventLog = EventLog(),
        willWithdraw: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.order = order
        self.log = log
        self.willWithdraw = willWithdraw
    }

    package var isAwaited: Bool {
        if case .waiting = state.withLock(\.self) { true } else { false }
    }

    package func enter(_ operation: AsyncOperation) throws -> Bool {
        guard case .answered(let error) = state.withLock(\.self) else {
            log.add(name)
            return false
        }
        if let error { throw error }
        return true
    }

    package func wait(_ operation: AsyncOperation) {
        let isAnswered = state.withLock { state in
            if case .answered = state { return true }
            state = .waiting(WeakReference(operation))
            return false
        }
        if isAnswered { operation.gateOpened() }
    }

    package func withdraw() {
        willWithdraw()
        log.add("withdraw \(name)")
    }

    package func waitDescription(namesHolders: Bool) -> String? { "waiting for the test" }

    /// Opens the gate, or has it end the operation. Only the first answer counts.
    package func open(withError error: (any Error)? = nil) {
        let previous = state.withLock { state in
            if case .answered = state { return state }
            return exchange(&state, with: .answered(error))
        }
        if case .waiting(let reference) = previous { reference.object?.gateOpened() }
    }
}
#endif
