import Foundation

/// How far an operation of any class has come, as a value.
enum OperationStatus: Equatable {
    case notStarted
    /// Between its start and its `main()`.
    case starting
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
            return operation.withState { $0.status(at: now) }
        }
        if isFinished { return .finished }
        return isExecuting ? .executing(nil) : .notStarted
    }
}

extension AsyncOperation.State {
    fileprivate func status(at now: ContinuousClock.Instant) -> OperationStatus {
        let age = execution?.began.age(at: now)
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

/// A time as people say it, about as exact as they want to know.
func ageText(_ age: Duration) -> String {
    let (seconds, attoseconds) = age.components
    if seconds < 1 { return "\(attoseconds / 1_000_000_000_000_000) ms" }
    if seconds < 10 { return "\(seconds).\(attoseconds / 100_000_000_000_000_000) s" }
    if seconds < 120 { return "\(seconds) s" }
    if seconds < 7_200 { return "\(seconds / 60) min \(seconds % 60) s" }
    return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
}
