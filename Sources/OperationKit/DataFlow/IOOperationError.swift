public import Foundation

/// What is missing where values flow between operations.
public enum IOOperationError: Error, Equatable {
    /// The operation was started without an input. Code 1.
    case missingInput(operation: String)
    /// The operation finished with success, but without an output. Code 2.
    case missingOutput(operation: String)
}

extension IOOperationError: LocalizedError, CustomNSError {
    /// `OperationKit.IOOperationError`
    public static var errorDomain: String { "OperationKit.IOOperationError" }

    /// The code documented at each case.
    public var errorCode: Int {
        switch self {
        case .missingInput: 1
        case .missingOutput: 2
        }
    }

    /// What happened, to which operation, and what to do about it.
    public var errorDescription: String? {
        switch self {
        case .missingInput(let operation):
            "The operation “\(operation)” was started without an input. Set its input before it starts."
        case .missingOutput(let operation):
            "The operation “\(operation)” finished without an output. End it with finish(with:), or with an error."
        }
    }

    /// The localized description.
    public var errorUserInfo: [String: Any] {
        descriptionUserInfo
    }
}
