public import Foundation

/// Why an operation did not run that needs another one's success: see `bind(_:to:_:)` and
/// ``AsyncOperation/requireSuccess(of:)``.
public enum DependencyError: Error {
    /// What the operation depends on failed. `CancellationError` as the error says that it was cancelled. Code 1.
    case dependencyFailed(operation: String, dependency: String, error: any Error)
    /// What the operation depends on had not finished when the operation was started. Code 2.
    case dependencyUnfinished(operation: String, dependency: String)
}

extension DependencyError: LocalizedError, CustomNSError {
    /// `OperationKit.DependencyError`
    public static var errorDomain: String { "OperationKit.DependencyError" }

    /// The code documented at each case.
    public var errorCode: Int {
        switch self {
        case .dependencyFailed: 1
        case .dependencyUnfinished: 2
        }
    }

    /// What happened, to which operation, because of which other one.
    public var errorDescription: String? {
        switch self {
        case .dependencyFailed(let operation, let dependency, is CancellationError):
            "The operation “\(operation)” did not run, because “\(dependency)” was cancelled."
        case .dependencyFailed(let operation, let dependency, let error):
            "The operation “\(operation)” did not run, because “\(dependency)” failed: \(error.localizedDescription)"
        case .dependencyUnfinished(let operation, let dependency):
            "The operation “\(operation)” did not run, because “\(dependency)” had not finished. Put it on a queue, or start it later."
        }
    }

    /// The localized description, and the error of the dependency as the underlying one.
    public var errorUserInfo: [String: Any] {
        var userInfo = descriptionUserInfo
        if case .dependencyFailed(_, _, let error) = self { userInfo[NSUnderlyingErrorKey] = error.asNSError }
        return userInfo
    }
}
