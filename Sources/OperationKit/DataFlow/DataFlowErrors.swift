public import Foundation

/// Why an operation did not run that needs another one's success: see `bind(_:to:_:)` and
/// ``AsyncOperation/requireSuccess(of:)``.
public enum DependencyError: LocalizedError, CustomNSError, CancellableError, NestingError {
    /// A dependency of the operation failed, or was cancelled; the `isCancellation` of its error says which. Code 1.
    ///
    /// If the dependency did not run either, because of another operation, or is a composite that failed only because
    /// of one outside it, `dependency` and `error` are those of that operation. So the error of each operation in a
    /// chain of dependent ones is about the first of them that went wrong.
    case dependencyFailed(operation: String, dependency: String, error: any Error)
    /// A dependency of the operation had not finished when the operation was started. Code 2.
    case dependencyUnfinished(operation: String, dependency: String)
    /// The dependency succeeded, but the optional property that was bound had no value. Code 3.
    ///
    /// `property` is the name of the property that was to be set, and `dependencyProperty` that of the one without a value. Each
    /// is `nil` where the name is not known at run time: those of stored properties of final classes are known, those of
    /// computed properties like ``IOOperation/output`` are not.
    case missingValue(operation: String, property: String?, dependency: String, dependencyProperty: String?)

    var inside: NamedError? {
        if case .dependencyFailed(_, let dependency, let error) = self { (dependency, error) } else { nil }
    }

    package var numericCode: Int {
        switch self {
        case .dependencyFailed: 1
        case .dependencyUnfinished: 2
        case .missingValue: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .dependencyFailed(let operation, let dependency, let error):
            "The operation “\(operation)” did not run, because “\(dependency)”"
                + error.explanation(of: dependency, depth: depth)
        case .dependencyUnfinished(let operation, let dependency):
            "The operation “\(operation)” did not run, because “\(dependency)” had not finished. Put “\(operation)” on a queue, or start it later."
        case .missingValue(let operation, let property, let dependency, let dependencyProperty):
            "The operation “\(operation)” did not run, because “\(dependency)” had no value"
                + (dependencyProperty.map { " in “\($0)”" } ?? "") + " for " + (property.map { "“\($0)”" } ?? "it")
                + "."
        }
    }

    var root: NamedError? { inside }

    func isSame(as other: any Error) -> Bool {
        guard case .dependencyFailed(let operation, let dependency, let error) = self,
            case .dependencyFailed(operation, dependency, let otherError) = other as? DependencyError,
            type(of: error) == type(of: otherError)
        else { return false }
        // The information of one with thousands inside it would be made only to be forgotten.
        if let error = error as? any CustomNSError, let other = otherError as? any CustomNSError {
            return error.errorCode == other.errorCode
        }
        let (first, second) = (error as NSError, otherError as NSError)
        return first.domain == second.domain && first.code == second.code
    }
}

/// Why a chain did not run: a ``MacroOperation``, a ``Waterfall``, or an operation made by `map` and its like.
public enum ChainError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The operation is part of another one already, or in the chain twice. Code 1.
    case alreadyUsed(operation: String, chain: String)
    /// The chain has become part of a longer one, which is to be started instead. Code 2.
    case consumed(chain: String)
    /// The chain had been started, or given its output, before it was continued. Code 3.
    case alreadyStarted(chain: String)
    /// A step was to take the output of an operation that is no earlier step of the same macro. Code 4.
    case notAStep(operation: String, chain: String)
    /// A job of a waterfall made an operation as a value, so that it would not run. Code 5.
    case operationNotRun(job: String, chain: String)

    package var numericCode: Int {
        switch self {
        case .alreadyUsed: 1
        case .consumed: 2
        case .alreadyStarted: 3
        case .notAStep: 4
        case .operationNotRun: 5
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .alreadyUsed(let operation, let chain) where operation == chain:
            "“\(chain)” cannot be continued or added as a step, because it is part of another operation. Create a new one."
        case .alreadyUsed(let operation, let chain):
            "“\(chain)” did not run, because “\(operation)” is part of another operation already, or was added to “\(chain)” twice. Create a new one for each step."
        case .consumed(let chain):
            "“\(chain)” did not run, because it has become part of a longer chain. Start what then() returned."
        case .alreadyStarted(let chain):
            "The steps or jobs that were added to “\(chain)” did not run, because it had been started, or had its output, before. Add all of them before the start."
        case .notAStep(let operation, let chain):
            "“\(chain)” did not run, because a step was to take the output of “\(operation)”, which is no earlier step of it."
        case .operationNotRun(let job, let chain):
            "“\(job)” of “\(chain)” makes an operation, which would not run. Use thenRun to run it, or thenDecide to pass it on as a value."
        }
    }
}

/// What is missing where values flow between operations.
public enum IOOperationError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// The operation was started without an input. Code 1.
    case missingInput(operation: String)
    /// The operation finished with success, but without an output. Code 2.
    case missingOutput(operation: String)

    package var numericCode: Int {
        switch self {
        case .missingInput: 1
        case .missingOutput: 2
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .missingInput(let operation):
            "The operation “\(operation)” was started without an input. Set its input before it starts."
        case .missingOutput(let operation):
            "The operation “\(operation)” finished without an output. End it with finish(with:), or with an error."
        }
    }
}
