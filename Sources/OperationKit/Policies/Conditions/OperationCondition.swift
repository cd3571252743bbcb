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
    ///   ``OperationQueueError/cannotBeAdded(operation:)`` inside. Foundation traps where that cannot be known.
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
public enum ConditionError: Error {
    /// A condition was not satisfied, or could not be evaluated. Code 1.
    case failed(operation: String, condition: String, error: any Error)
    /// The operation that has to run before the evaluation failed, or was cancelled, if `isCancellation` of its error is
    /// true. The condition was not evaluated. Code 2.
    case prerequisiteFailed(operation: String, condition: String, prerequisite: String, error: any Error)
    /// A condition is satisfied that was not to be. It is the error inside of ``failed(operation:condition:error:)``. Code 3.
    case satisfied(operation: String, condition: String)
}

extension ConditionError: LocalizedError, CustomNSError, NestingError {
    var code: Int {
        switch self {
        case .failed: 1
        case .prerequisiteFailed: 2
        case .satisfied: 3
        }
    }

    func text(depth: Int) -> String {
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

    var inside: (name: String, error: any Error)? {
        switch self {
        case .failed(_, let condition, let error): (condition, error)
        case .prerequisiteFailed(_, _, let prerequisite, let error): (prerequisite, error)
        case .satisfied: nil
        }
    }
}
