public import Foundation

// MARK: - Building in one expression

extension CompoundOperation {
    /// Creates a compound of the operations that a closure lists.
    ///
    /// ```swift
    /// let compile = ["a.swift", "b.swift"].map { file in
    ///     ThrowingBlockOperation(name: "compile \(file)") { /* … */ }
    /// }
    /// let build = CompoundOperation(name: "Build", failurePolicy: .cancelRemaining) {
    ///     let link = ThrowingBlockOperation(name: "link") { /* … */ }
    ///     link.addDependencies(compile)
    ///     compile
    ///     link
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: Its name, for messages and errors.
    ///   - maxConcurrentOperationCount: How many children may run at the same time. The default leaves it to the system. Traps
    ///     if it is another negative number.
    ///   - failurePolicy: What the first failure of a child means for the others.
    ///   - operations: Called once, before the initializer returns. Each statement is an operation, a sequence of
    ///     operations, or a call that returns nothing. With a `return` it is an ordinary closure, to the compiler: only what
    ///     that returns is added. If an operation is there twice or belongs to another compound, the
    ///     compound finishes with a ``CompoundAdditionError``, as with
    ///     ``init(name:operations:maxConcurrentOperationCount:failurePolicy:)``.
    /// - Throws: What the closure throws.
    public convenience init(
        name: String? = nil,
        maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        failurePolicy: FailurePolicy = .continueAll,
        @OperationBuilder operations: () throws -> [Operation]
    ) rethrows {
        self.init(
            name: name, operations: try operations(), maxConcurrentOperationCount: maxConcurrentOperationCount,
            failurePolicy: failurePolicy)
    }
}

// MARK: - Blocks

extension CompoundOperation {
    /// Adds a synchronous block as a child.
    ///
    /// For work on the main actor, add a `TaskOperation { @MainActor in … }`.
    ///
    /// - Parameters:
    ///   - name: The name of the child, for messages and errors.
    ///   - progressWeight: Its share in the progress of the compound, in proportion to those of the other children.
    ///   - block: The work. It runs once, on a thread of the private queue, unless the compound is cancelled before; what it
    ///     throws is the child's error. Released when the child finishes.
    /// - Returns: The child.
    /// - Throws: ``CompoundAdditionError/compoundFinished(operation:compound:)`` if all children have finished.
    @discardableResult
    public final func addOperation(
        name: String? = nil, progressWeight: Int64 = 1, _ block: @escaping @Sendable () throws -> Void
    ) throws -> ThrowingBlockOperation {
        let operation = ThrowingBlockOperation(name: name, block)
        try addOperation(operation, progressWeight: progressWeight)
        return operation
    }
}

// MARK: - From a child to its compound

extension Operation {
    /// The nearest compound that the operation is inside of: as a child, or as a part of a child.
    ///
    /// With it, an operation can add operations to its compound without keeping a reference to it:
    ///
    /// ```swift
    /// final class Crawl: AsyncOperation, @unchecked Sendable {
    ///     var links: [String] = []
    ///
    ///     override func main() {
    ///         do {
    ///             for _ in links { try parentCompound?.addOperation(Crawl()) }
    ///             finish()
    ///         } catch {
    ///             finish(withError: error)
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// May be read at any time, on any thread. `nil` for an operation of another class than ``AsyncOperation``,
    /// which does not know what it is part of, and once the compound has been released.
    /// Complexity: linear in the depth of the operation below the compound.
    public final var parentCompound: CompoundOperation? {
        for case let compound as CompoundOperation in enclosingOperations { return compound }
        return nil
    }
}

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
        Array(operations)
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
