public import Foundation

extension Operation {
    /// Makes the operation depend on all of these, as `addDependency(_:)` does one by one.
    ///
    /// Call it before the operation is started or put on a queue. Complexity: Foundation searches the dependencies that
    /// are there at each addition, so n additions to one operation cost O(n²) pointer comparisons.
    ///
    /// - Parameter operations: The operations that have to finish first. Traps if the operation itself is among them.
    public final func addDependencies(_ operations: some Sequence<Operation>) {
        for operation in operations {
            precondition(operation !== self, "OperationKit: “\(displayName)” cannot depend on itself")
            addDependency(operation)
        }
    }
}
