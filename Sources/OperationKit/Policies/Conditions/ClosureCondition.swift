import Foundation

/// A condition that is a closure: yours, or one of those that the library has.
///
/// ```swift
/// let upload = AsyncBlockOperation(name: "upload") { finish in finish() }
/// upload.addCondition(.noFailedDependencies)
/// upload.addCondition(.not(ClosureCondition(name: "weekend") { _ in
///     Calendar.current.isDateInWeekend(.now) ? .satisfied : .failed(CancellationError())
/// }))
/// ```
public struct ClosureCondition: OperationCondition {
    /// The name of the condition.
    public let name: String
    private let body: @Sendable (AsyncOperation) async throws -> ConditionResult
    /// The same, if it takes no time.
    let immediateBody: (@Sendable (AsyncOperation) -> ConditionResult)?

    /// Creates a condition.
    ///
    /// - Parameters:
    ///   - name: The name of the condition, for errors and descriptions.
    ///   - evaluate: Says whether the operation may run, or throws.
    public init(
        name: String, _ evaluate: @escaping @Sendable (_ operation: AsyncOperation) async throws -> ConditionResult
    ) {
        self.name = name
        body = evaluate
        immediateBody = nil
    }

    fileprivate init(name: String, immediately evaluate: @escaping @Sendable (AsyncOperation) -> ConditionResult) {
        self.name = name
        body = evaluate
        immediateBody = evaluate
    }

    /// Calls the closure.
    ///
    /// - Parameter operation: The operation with the condition.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    public func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
        try await body(operation)
    }
}

extension OperationCondition where Self == ClosureCondition {
    /// No operation that the operation depends on has failed. One that was cancelled has not.
    ///
    /// The cause in the ``ConditionError`` is a ``DependencyError/dependencyFailed(operation:dependency:error:)``.
    /// ``AsyncOperation/requireSuccess(of:)`` asks for the success of one of them instead.
    public static var noFailedDependencies: Self {
        ClosureCondition(
            name: "no failed dependencies", immediately: { $0.resultOfDependencies { !$0.isCancellation } })
    }

    /// No operation that the operation depends on was cancelled, nor has it ended with another error whose `isCancellation` is
    /// true.
    ///
    /// The cause in the ``ConditionError`` is a ``DependencyError/dependencyFailed(operation:dependency:error:)``.
    public static var noCancelledDependencies: Self {
        ClosureCondition(
            name: "no cancelled dependencies", immediately: { $0.resultOfDependencies { $0.isCancellation } })
    }

    /// Satisfied if another condition fails, and the other way round. What the other one skips is skipped.
    ///
    /// If the other one throws, or its prerequisite does not succeed, this one does the same: it is not known whether the other
    /// one holds.
    ///
    /// - Parameter condition: The other condition, with its prerequisite.
    /// - Returns: The condition.
    public static func not(_ condition: some OperationCondition) -> Self {
        ClosureCondition(name: "not \(condition.name)") { operation in
            switch try await condition.result(for: operation) {
            case .satisfied:
                .failed(ConditionError.satisfied(operation: operation.displayName, condition: condition.name))
            case .failed: .satisfied
            case .skipped: .skipped
            }
        }
    }

    /// Satisfied if all of several conditions are. They are evaluated in their order, up to the first that is not, which decides:
    /// one that fails, skips, throws, or whose prerequisite does not succeed.
    ///
    /// - Parameter conditions: The conditions, with their prerequisites.
    /// - Returns: The condition. Without conditions it is satisfied, under the name “no condition”.
    public static func all(_ conditions: any OperationCondition...) -> Self {
        let name = conditions.isEmpty ? "no condition" : conditions.map(\.name).joined(separator: " and ")
        return ClosureCondition(name: name) { operation in
            for condition in conditions {
                let result = try await condition.result(for: operation)
                guard case .satisfied = result else { return result }
            }
            return .satisfied
        }
    }

    /// Satisfied if one of several conditions is. They are evaluated in their order, up to the first that is. If none is, the last
    /// one that failed decides, or else they skip the operation. One that throws, or whose prerequisite does not succeed, has failed.
    ///
    /// - Parameters:
    ///   - first: A condition, with its prerequisite.
    ///   - others: Others.
    /// - Returns: The condition.
    public static func any(_ first: some OperationCondition, _ others: any OperationCondition...) -> Self {
        let conditions = [first as any OperationCondition] + others
        return ClosureCondition(name: conditions.map(\.name).joined(separator: " or ")) { operation in
            var decisive = Result<ConditionResult, any Error>.success(.skipped)
            for condition in conditions {
                let answer = await condition.answer(for: operation)
                try Task.checkCancellation()
                switch answer {
                case .success(.satisfied): return .satisfied
                case .success(.failed), .failure: decisive = answer
                case .success(.skipped): break
                }
            }
            return try decisive.get()
        }
    }
}

extension AsyncOperation {
    /// Looks for a dependency that has ended with a certain kind of error.
    fileprivate final func resultOfDependencies(failingFor isFailure: (any Error) -> Bool) -> ConditionResult {
        for dependency in dependencies {
            guard let error = dependency.endingError, isFailure(error) else { continue }
            return .failed(
                DependencyError.dependencyFailed(
                    operation: displayName, dependency: dependency.displayName, error: error))
        }
        return .satisfied
    }
}
