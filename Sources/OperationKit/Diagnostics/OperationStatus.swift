import Foundation

/// How far an operation of any class has come, as a value.
enum OperationStatus: Equatable {
    case notStarted
    /// Between its start and its `main()`.
    case starting
    /// Between its start and its `main()`, with a preparation that takes time, and the elapsed time, if recorded.
    case preparing(String, Duration?)
    /// The elapsed time, if recorded.
    case executing(Duration?)
    /// A composite that has been told to end, and whose children have not.
    case draining(Duration?)
    /// The outcome stands and is being delivered.
    case finishing
    case finished

    var text: String {
        switch self {
        case .notStarted: "not started"
        case .starting: "starting"
        case .preparing(let description, let age): description + (age.map { ", for \(ageText($0))" } ?? "")
        case .executing(let age): "executing" + (age.map { " for \(ageText($0))" } ?? "")
        case .draining(let age):
            "told to end, waiting for its children" + (age.map { ", executing for \(ageText($0))" } ?? "")
        case .finishing: "delivering its outcome"
        case .finished: "finished"
        }
    }
}

extension Operation {
    /// Asks the operation. What it answers may be overridden, so nothing may be locked.
    func status(at now: ContinuousClock.Instant) -> OperationStatus {
        if let operation = self as? AsyncOperation {
            let (status, isWaiting, preparation) = operation.withState { state in
                (state.status(at: now), state.lifecycle.isWaiting, state.preparations?.awaited)
            }
            guard case .executing(let age) = status, isWaiting else { return status }
            // What it waited for has ended, and a dispatch queue is to go on.
            guard let preparation else { return .preparing("waiting for its dispatch queue", age) }
            return preparation.waitDescription.map { .preparing($0, age) } ?? status
        }
        if isFinished { return .finished }
        return isExecuting ? .executing(nil) : .notStarted
    }
}

extension AsyncOperation.State {
    fileprivate func status(at now: ContinuousClock.Instant) -> OperationStatus {
        let age = execution?.startTime.age(at: now)
        return switch lifecycle.state {
        case .pending: .notStarted
        case .starting: .starting
        case .executing: .executing(age)
        case .draining: .draining(age)
        case .finishing: .finishing
        case .finished: .finished
        }
    }
}
