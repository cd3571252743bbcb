package import OperationKit

/// An observer that writes down what it is told, and does what the test wants with it.
package final class EventListener: OperationObserver {
    package let log = EventLog()
    private let action: @Sendable (AsyncOperation, OperationEvent) -> Void

    package init(action: @escaping @Sendable (AsyncOperation, OperationEvent) -> Void = { _, _ in }) {
        self.action = action
    }

    package func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        log.add("\(event)")
        action(operation, event)
    }
}

extension OperationEvent {
    package var isEnd: Bool { if case .finished = kind { true } else { false } }
    package var isRunning: Bool { if case .running = kind { true } else { false } }
}
