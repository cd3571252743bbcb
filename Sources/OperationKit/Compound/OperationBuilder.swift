public import Foundation

/// Collects the children of a ``CompoundOperation`` from the statements of a closure.
///
/// Each statement is an operation, a sequence of operations, or a call that returns nothing, such as `addDependency`.
/// `if`, `switch` and `for` can be used.
@resultBuilder
public enum OperationBuilder {
    /// One operation.
    public static func buildExpression(_ operation: Operation) -> [Operation] {
        [operation]
    }

    /// Several operations.
    public static func buildExpression(_ operations: some Sequence<some Operation>) -> [Operation] {
        operations.map { $0 }
    }

    /// A call between the operations.
    public static func buildExpression(_ call: Void) -> [Operation] {
        []
    }

    /// The operations of all statements.
    public static func buildBlock(_ parts: [Operation]...) -> [Operation] {
        parts.flatMap { $0 }
    }

    /// The operations of an `if` without `else`.
    public static func buildOptional(_ operations: [Operation]?) -> [Operation] {
        operations ?? []
    }

    /// The operations of the first branch.
    public static func buildEither(first operations: [Operation]) -> [Operation] {
        operations
    }

    /// The operations of the other branch.
    public static func buildEither(second operations: [Operation]) -> [Operation] {
        operations
    }

    /// The operations of a loop.
    public static func buildArray(_ parts: [[Operation]]) -> [Operation] {
        parts.flatMap { $0 }
    }

    /// The operations of an `if #available`.
    public static func buildLimitedAvailability(_ operations: [Operation]) -> [Operation] {
        operations
    }
}
