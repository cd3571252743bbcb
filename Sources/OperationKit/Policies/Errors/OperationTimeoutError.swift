public import Foundation

/// An operation took longer than its timeout.
///
/// It is a failure: `isCancellation` is false. Code 1.
public struct OperationTimeoutError: Error, Equatable {
    /// The name of the operation, or else its type.
    public let operation: String
    /// How long it was allowed to take.
    public let timeout: Duration

    /// Creates the error.
    ///
    /// - Parameters:
    ///   - operation: The name of the operation.
    ///   - timeout: How long it was allowed to take.
    public init(operation: String, timeout: Duration) {
        self.operation = operation
        self.timeout = timeout
    }
}

extension OperationTimeoutError: LocalizedError, CustomNSError {
    /// `OperationKit.OperationTimeoutError`
    public static var errorDomain: String { "OperationKit.OperationTimeoutError" }

    /// 1
    public var errorCode: Int { 1 }

    /// Which operation took longer than which time.
    public var errorDescription: String? {
        "The operation “\(operation)” took longer than its timeout of \(timeout)."
    }

    /// The localized description.
    public var errorUserInfo: [String: Any] { descriptionUserInfo }
}
