#if DEBUG
@testable package import OperationKit

/// A preparation that takes time until the test ends it, and writes down what is called on it.
package final class HeldPreparation: Preparation {
    package let stage: PreparationStage
    package let log: EventLog
    private let operation = Shared<WeakReference?>(nil)
    private let name: String

    package init(_ name: String = "prepare", stage: PreparationStage = .binding, _ log: EventLog = EventLog()) {
        self.name = name
        self.stage = stage
        self.log = log
    }

    package var isBegun: Bool { operation.value != nil }

    package func prepare(_ operation: AsyncOperation) -> Bool {
        log.add(name)
        self.operation.value = WeakReference(operation)
        return false
    }

    package func withdraw() {
        log.add("withdraw \(name)")
    }

    package var waitDescription: String? { "waiting for the test" }

    /// Ends the preparation, which has begun.
    package func end(withError error: (any Error)? = nil) {
        operation.value?.operation?.preparationEnded(withError: error)
    }
}
#endif
