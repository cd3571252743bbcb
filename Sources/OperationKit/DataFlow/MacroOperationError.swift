public import Foundation

/// Why the steps of a ``MacroOperation``, or of an operation made by `map` and its like, did not run.
public enum MacroOperationError: Error, Equatable {
    /// The operation is a step already, of this macro or of another one, or the child of a compound. Code 1.
    case alreadyUsed(operation: String, macro: String)
    /// The macro has become part of a longer one, which is to be started instead. Code 2.
    case consumed(macro: String)
    /// The macro had been started before a step was added to it. Code 3.
    case alreadyStarted(macro: String)
    /// An operation whose output a step was to take is no step of the same macro. Code 4.
    case notAStep(operation: String, macro: String)
}

extension MacroOperationError: LocalizedError, CustomNSError {
    /// `OperationKit.MacroOperationError`
    public static var errorDomain: String { "OperationKit.MacroOperationError" }

    /// The code documented at each case.
    public var errorCode: Int {
        switch self {
        case .alreadyUsed: 1
        case .consumed: 2
        case .alreadyStarted: 3
        case .notAStep: 4
        }
    }

    /// What happened, to which operation, and what to do about it.
    public var errorDescription: String? {
        switch self {
        case .alreadyUsed(let operation, let macro):
            "“\(macro)” did not run, because its step “\(operation)” is part of another operation, or in it twice. Create a new one for each step."
        case .consumed(let macro):
            "“\(macro)” did not run, because it has become part of a longer macro. Start what then() returned."
        case .alreadyStarted(let macro):
            "“\(macro)” had been started before a step was added to it. Add all steps before the start."
        case .notAStep(let operation, let macro):
            "“\(macro)” did not run, because a step was to take the output of “\(operation)”, which is no earlier step of it."
        }
    }

    /// The localized description.
    public var errorUserInfo: [String: Any] {
        descriptionUserInfo
    }
}
