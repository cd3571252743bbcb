public import Foundation

/// Why an operation did not run that needs another one's success: see `bind(_:to:_:)` and
/// ``AsyncOperation/requireSuccess(of:)``.
public enum DependencyError: Error {
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
}

extension DependencyError: LocalizedError, CustomNSError, NestingError {
    var inside: (name: String, error: any Error)? {
        if case .dependencyFailed(_, let dependency, let error) = self { (dependency, error) } else { nil }
    }

    var code: Int {
        switch self {
        case .dependencyFailed: 1
        case .dependencyUnfinished: 2
        case .missingValue: 3
        }
    }

    func text(depth: Int) -> String {
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

}

extension DependencyError {
    var root: (name: String, error: any Error)? { inside }

    func isSame(as other: any Error) -> Bool {
        guard case .dependencyFailed(let operation, let dependency, let error) = self,
            case .dependencyFailed(operation, dependency, let otherError) = other as? DependencyError
        else { return false }
        let (first, second) = (error as NSError, otherError as NSError)
        return type(of: error) == type(of: otherError) && first.domain == second.domain && first.code == second.code
    }
}
