import Dispatch
import Foundation

/// How far an operation of any class has come, as a value.
enum OperationStatus: Equatable {
    case notStarted
    /// Between its start and its `main()`.
    case starting
    /// For so many seconds, where that is recorded.
    case executing(TimeInterval?)
    /// A composite that has been told to end, and whose children have not.
    case draining(TimeInterval?)
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
    func status(at now: DispatchTime) -> OperationStatus {
        if let operation = self as? AsyncOperation {
            return operation.withState { $0.status(at: now) }
        }
        if isFinished { return .finished }
        return isExecuting ? .executing(nil) : .notStarted
    }
}

extension AsyncOperation.State {
    fileprivate func status(at now: DispatchTime) -> OperationStatus {
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
func ageText(_ seconds: TimeInterval) -> String {
    let tenths = Int((seconds * 10).rounded(.down))
    let whole = tenths / 10
    if tenths < 10 { return "\(Int((seconds * 1000).rounded(.down))) ms" }
    if whole < 10 { return "\(whole).\(tenths % 10) s" }
    if whole < 120 { return "\(whole) s" }
    if whole < 7_200 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3_600) h \(whole / 60 % 60) min"
}
