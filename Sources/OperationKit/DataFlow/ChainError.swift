public import Foundation

/// Why a chain did not run: a ``MacroOperation``, a ``Waterfall``, or an operation made by `map` and its like.
public enum ChainError: Error, Equatable {
    /// The operation is part of another one already, or in the chain twice. Code 1.
    case alreadyUsed(operation: String, chain: String)
    /// The chain has become part of a longer one, which is to be started instead. Code 2.
    case consumed(chain: String)
    /// The chain had been started before it was continued. Code 3.
    case alreadyStarted(chain: String)
    /// A step was to take the output of an operation that is no earlier step of the same macro. Code 4.
    case notAStep(operation: String, chain: String)
    /// A job of a waterfall made an operation as a value, so that it would not run. Code 5.
    case operationNotRun(job: String, chain: String)
}

extension ChainError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .alreadyUsed: 1
        case .consumed: 2
        case .alreadyStarted: 3
        case .notAStep: 4
        case .operationNotRun: 5
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .alreadyUsed(let operation, let chain) where operation == chain:
            "“\(chain)” cannot be continued or added as a step, because it is part of another operation. Create a new one."
        case .alreadyUsed(let operation, let chain):
            "“\(chain)” did not run, because “\(operation)” is part of another operation already, or was added to “\(chain)” twice. Create a new one for each step."
        case .consumed(let chain):
            "“\(chain)” did not run, because it has become part of a longer chain. Start what then() returned."
        case .alreadyStarted(let chain):
            "The steps or jobs that were added to “\(chain)” did not run, because it had been started before. Add all of them before the start."
        case .notAStep(let operation, let chain):
            "“\(chain)” did not run, because a step was to take the output of “\(operation)”, which is no earlier step of it."
        case .operationNotRun(let job, let chain):
            "“\(job)” of “\(chain)” makes an operation, which would not run. Use thenRun to run it, or thenDecide to pass it on as a value."
        }
    }
}
