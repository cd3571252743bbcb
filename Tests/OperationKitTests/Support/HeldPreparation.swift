import OperationKitTestSupport

@testable import OperationKit

/// A preparation that takes time until the test ends it, and writes down what is called on it.
final class HeldPreparation: Preparation {
    let stage: PreparationStage
    let log: EventLog
    private let operation = Shared<WeakReference?>(nil)
    private let name: String

    init(_ name: String = "prepare", stage: PreparationStage = .binding, _ log: EventLog = EventLog()) {
        self.name = name
        self.stage = stage
        self.log = log
    }

    var isBegun: Bool { operation.value != nil }

    func prepare(_ operation: AsyncOperation) -> Bool {
        log.add(name)
        self.operation.value = WeakReference(operation)
        return false
    }

    func withdraw() {
        log.add("withdraw \(name)")
    }

    var waitDescription: String? { "waiting for the test" }

    /// Ends the preparation, which has begun.
    func end(withError error: (any Error)? = nil) {
        operation.value?.operation?.preparationEnded(withError: error)
    }
}
