public import Foundation

/// Something that has to hold for an operation to run.
///
/// ```swift
/// struct SignedIn: OperationCondition {
///     let name = "signed in"
///
///     func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
///         await Session.shared.isSignedIn ? .satisfied : .failed(URLError(.userAuthenticationRequired))
///     }
/// }
///
/// actor Session {
///     static let shared = Session()
///     private(set) var isSignedIn = false
/// }
///
/// let upload = AsyncBlockOperation(name: "upload") { finish in finish() }
/// upload.addCondition(SignedIn())
/// ```
public protocol OperationCondition: Sendable {
    /// The name of the condition, for errors and descriptions. The default is that of its type.
    var name: String { get }

    /// Returns an operation that has to succeed before the evaluation, such as a login. The default returns `nil`.
    ///
    /// It is run on a queue of its own, never on that of the operation that waits, nor as its sibling. If it fails, the condition
    /// is not evaluated, and the operation ends with ``ConditionError/prerequisiteFailed(operation:condition:prerequisite:error:)``.
    /// It is cancelled when the operation that waits is.
    ///
    /// Called once for each operation, on any thread, which it may block, and not for an operation that has been cancelled. To share
    /// one run among operations, keep a `Task` in an actor, and await its value in ``evaluate(for:)``.
    ///
    /// - Parameter operation: The operation with the condition.
    /// - Returns: An operation that is used nowhere else: a new one each time. If it was started, is a child, is on a queue that is
    ///   known, or runs for another operation already, the operation ends with an error that has
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` inside. Foundation traps where that cannot be known. If it depends on the
    ///   operation, or on a composite around that, directly or through others that have not ended, the error has
    ///   ``CompoundOperationError/dependencyCycle(name:path:)`` inside.
    func prerequisite(for operation: AsyncOperation) -> Operation?

    /// Says whether the operation may run.
    ///
    /// Called once for each operation, in a task that has the priority of the operation, after everything that the
    /// operation depends on has finished and the conditions before this one were satisfied. The task is cancelled when the
    /// operation is, which does not wait for it. If the evaluation cancels the task itself, the operation is cancelled.
    ///
    /// What it throws is the cause of a failure, `CancellationError` for one: the operation then ends with a ``ConditionError`` whose
    /// `isCancellation` is true, without having been cancelled.
    ///
    /// - Parameter operation: The operation with the condition, which is kept alive meanwhile.
    /// - Returns: What becomes of the operation.
    /// - Throws: What is wrong with the condition, as ``ConditionResult/failed(_:)`` says it.
    func evaluate(for operation: AsyncOperation) async throws -> ConditionResult
}

extension OperationCondition {
    /// The name of the type.
    public var name: String { String(describing: Self.self) }

    /// Returns `nil`: nothing has to run before.
    ///
    /// - Parameter operation: The operation with the condition.
    /// - Returns: `nil`.
    public func prerequisite(for operation: AsyncOperation) -> Operation? { nil }
}

/// What a condition says about an operation.
public enum ConditionResult: Sendable {
    /// It may run.
    case satisfied
    /// It ends with ``ConditionError/failed(operation:condition:error:)``, with this error inside, without its `main()`.
    case failed(any Error)
    /// It ends as cancelled, without its `main()`. That is no failure.
    case skipped
}

extension AsyncOperation {
    /// Makes the operation run only if a condition is satisfied.
    ///
    /// Conditions are evaluated one after the other, in the order of their addition, between `start()` and ``main()``. Meanwhile the
    /// operation is executing and keeps its place on its queue, but no thread waits. The first one that is not satisfied ends
    /// it. Add conditions before the start. Later they have no effect, which debug builds report
    /// (``MisuseReport/latePolicy(operation:policy:)``).
    ///
    /// Conditions are released once they have been evaluated. A condition should not hold the operation before this one: a long chain
    /// of operations that were never started would be freed by nested calls. Ask the operation that it is given for its
    /// `dependencies` instead.
    ///
    /// - Parameter condition: What has to hold.
    public final func addCondition(_ condition: some OperationCondition) {
        setPolicy("the condition “\(condition.name)”") { $0.add(ConditionGate(condition)) }
    }

    /// Makes the operation run only if a closure says so.
    ///
    /// ```swift
    /// let upload = AsyncBlockOperation(name: "upload") { finish in finish() }
    /// upload.addCondition(name: "weekday") { _ in
    ///     Calendar.current.isDateInWeekend(.now) ? .skipped : .satisfied
    /// }
    /// ```
    ///
    /// Does the same as ``addCondition(_:)``.
    ///
    /// - Parameters:
    ///   - name: The name of the condition, for errors and descriptions.
    ///   - evaluate: Says whether the operation may run, or throws.
    public final func addCondition(
        name: String, _ evaluate: @escaping @Sendable (_ operation: AsyncOperation) async throws -> ConditionResult
    ) {
        addCondition(ClosureCondition(name: name, evaluate))
    }
}

/// Why an operation did not run that has conditions.
public enum ConditionError: LocalizedError, CustomNSError, CancellableError, NestingError {
    /// A condition was not satisfied, or could not be evaluated. Code 1.
    case failed(operation: String, condition: String, error: any Error)
    /// The operation that has to run before the evaluation failed, or was cancelled, if `isCancellation` of its error is
    /// true. The condition was not evaluated. Code 2.
    case prerequisiteFailed(operation: String, condition: String, prerequisite: String, error: any Error)
    /// A condition is satisfied that was not to be. It is the error inside of ``failed(operation:condition:error:)``. Code 3.
    case satisfied(operation: String, condition: String)

    package var numericCode: Int {
        switch self {
        case .failed: 1
        case .prerequisiteFailed: 2
        case .satisfied: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .failed(let operation, let condition, let error):
            "The operation “\(operation)” did not run, because its condition “\(condition)”"
                + error.explanation(depth: depth)
        case .prerequisiteFailed(let operation, let condition, let prerequisite, let error):
            "The operation “\(operation)” did not run, because “\(prerequisite)”, which its condition “\(condition)” needs,"
                + error.explanation(of: prerequisite, depth: depth)
        case .satisfied(let operation, let condition):
            "The condition “\(condition)” of the operation “\(operation)” is satisfied."
        }
    }

    var inside: NamedError? {
        switch self {
        case .failed(_, let condition, let error): (condition, error)
        case .prerequisiteFailed(_, _, let prerequisite, let error): (prerequisite, error)
        case .satisfied: nil
        }
    }
}

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
    /// The cause in the ``ConditionError`` is a ``DependencyError/dependencyFailed(operation:dependency:error:)``, of the
    /// operation that went wrong first.
    /// ``AsyncOperation/requireSuccess(of:)`` asks for the success of one of them instead.
    public static var noFailedDependencies: Self {
        ClosureCondition(
            name: "no failed dependencies", immediately: { $0.resultOfDependencies { !$0.isCancellation } })
    }

    /// No operation that the operation depends on has ended as cancelled: with an error whose `isCancellation` is true. One that
    /// succeeded although it was cancelled does not count.
    ///
    /// The cause in the ``ConditionError`` is a ``DependencyError/dependencyFailed(operation:dependency:error:)``, of the
    /// operation that went wrong first.
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
                let answer = await Result { try await condition.result(for: operation) }
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
    fileprivate func resultOfDependencies(failingFor isFailure: (any Error) -> Bool) -> ConditionResult {
        for dependency in dependencies {
            guard var error = dependency.endingError, isFailure(error) else { continue }
            // Of a dependency that this condition has stopped, its own cause: the errors of a chain would be inside each other.
            if case .failed(_, _, let inside as DependencyError)? = error as? ConditionError { error = inside }
            let cause = RootCause(dependency, error: error)
            return .failed(
                DependencyError.dependencyFailed(operation: displayName, dependency: cause.name, error: cause.error))
        }
        return .satisfied
    }
}
