import Foundation

extension IOOperation {
    /// Returns an operation that runs this one, and another one in its place if this one fails.
    ///
    /// ```swift
    /// let request = TaskOperation(name: "request") { try Data(contentsOf: URL(fileURLWithPath: "/new")) }
    /// let page = request.recoverRun { _ in
    ///     TaskOperation(name: "cache") { try Data(contentsOf: URL(fileURLWithPath: "/old")) }
    /// }
    /// ```
    ///
    /// The output of the second operation is that of the new one, and so is its error if it fails, too.
    ///
    /// What ``map(to:_:)`` says of the new operation holds here. Cancelling it cancels the one that runs. A recovery that
    /// makes an operation which is part of another one, or which the new operation is inside of, ends the new one with
    /// ``CompoundAdditionError/alreadyAdded(operation:compound:)``. In its ``AsyncOperation/progress``, the last tenth is left
    /// for the second operation.
    ///
    /// - Parameter recovery: Makes an operation from the error, or throws. The operation has its input, is part of no other
    ///   operation, and is started by the new one only. Called once if this operation fails, after it has finished and on a
    ///   thread of a private queue, also if the error is the reason of ``AsyncOperation/cancel(withError:)``; not called for an
    ///   error whose `isCancellation` is true, because that is no failure, nor once the new operation was cancelled. Released
    ///   at the end.
    /// - Returns: The new operation.
    public final func recoverRun<Made: OutputOperation>(
        _ recovery: @escaping @Sendable (any Error) throws -> Made
    ) -> IOOperation<Input, Output> where Made.Output == Output {
        RecoveryOperation(self, recovery)
    }
}

/// Runs one operation, and another one if that fails.
///
/// A turn after the first operation calls the closure, so that what this makes becomes a child before the last one ends.
private final class RecoveryOperation<Input: Sendable, Made: OutputOperation>:
    DerivedOperation<Input, Made.Output, Made.Output>, @unchecked Sendable
{
    typealias Recovery = @Sendable (any Error) throws -> Made

    private static var sourceWeight: Int64 { 9 }
    private static var madeWeight: Int64 { 1 }

    // Set until the end.
    private var recovery: Recovery?
    private var made: Result<Made, any Error>?

    init(_ source: IOOperation<Input, Made.Output>, _ recovery: @escaping Recovery) {
        self.recovery = recovery
        super.init(source, weight: Self.sourceWeight, failurePolicy: .continueAll) { snapshot in
            snapshot.children.removeAll { $0.operation is TurnOperation }
            snapshot.summary = []
        }
        guard self.source != nil else { return }
        let turn = TurnOperation(of: "a recovery") { [unowned self] in recoverFromFailure() }
        turn.addDependency(source)
        steps.append(turn, weight: nil)
        steps.children.changeProgress { $0.added(Self.madeWeight) }
    }

    /// Runs the operation that the closure makes, if the first one has failed. Not called when this one was cancelled before.
    private func recoverFromFailure() {
        let (source, recovery) = lock.withLock { (self.source, self.recovery.take()) }
        guard let recovery, let error = source?.error, !error.isCancellation else { return }
        let made = Result {
            let operation = try recovery(error)
            try requireOutside(operation)
            // Its share was counted from the beginning.
            try steps.children.add([operation], weights: [Self.madeWeight], to: self, inPlaceOf: Self.madeWeight)
            return operation
        }
        lock.withLock { self.made = made }
    }

    /// Releases all before the end, and after unlocking: what they hold may run arbitrary code when it is freed.
    override func takeResult() -> Result<Made.Output, any Error> {
        let (source, made, recovery) = lock.withLock { (self.source.take(), self.made.take(), self.recovery.take()) }
        withExtendedLifetime(recovery) {}
        return Result {
            if let made = try made?.mapError({ source?.passingOnCause(in: $0) ?? $0 }).get() {
                if let error = made.error { throw made.skippedError ?? error }
                if let output = made.output { return output }
                throw IOOperationError.missingOutput(operation: made.displayName)
            }
            if let output = source?.output { return output }
            throw source?.skippedError ?? source?.error ?? CancellationError()
        }
    }
}
