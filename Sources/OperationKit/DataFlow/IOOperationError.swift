public import Foundation

/// What is missing where values flow between operations.
public enum IOOperationError: Error, Equatable {
    /// The operation was started without an input. Code 1.
    case missingInput(operation: String)
    /// The operation finished with success, but without an output. Code 2.
    case missingOutput(operation: String)
}

extension IOOperationError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .missingInput: 1
        case .missingOutput: 2
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .missingInput(let operation):
            "The operation “\(operation)” was started without an input. Set its input before it starts."
        case .missingOutput(let operation):
            "The operation “\(operation)” finished without an output. End it with finish(with:), or with an error."
        }
    }
}
