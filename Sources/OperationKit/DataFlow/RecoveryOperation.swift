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
private final class RecoveryOperation<Input: Sendable, Made: OutputOperation>:
    DerivedOperation<Input, Made.Output, Made.Output>, @unchecked Sendable
{
    private static var sourceWeight: Int64 { 9 }
    private static var madeWeight: Int64 { 1 }

    // Set until the end.
    private var recovery: (@Sendable (any Error) throws -> Made)?
    private var made: Result<Made, any Error>?

    init(
        _ source: IOOperation<Input, Made.Output>, _ recovery: @escaping @Sendable (any Error) throws -> Made
    ) {
        self.recovery = recovery
        super.init(
            source, weight: Self.sourceWeight, failurePolicy: .continueAll, body: CompositeBody(),
            describe: { $0.summary = [] })
        if self.source != nil { steps.children.changeProgress { $0.added(Self.madeWeight) } }
    }

    override func startSource() {
        guard let source = lock.withLock({ source }) else { return super.startSource() }
        runBody(in: steps.children, start: { super.startSource() }) { [unowned self] in
            await recover(from: source)
            return true
        }
    }

    /// Runs the operation that the closure makes, if the first one has failed.
    private func recover(from source: AsyncOperation) async {
        await source.waitForFinishUncancellably()
        let recovery = lock.withLock { self.recovery.take() }
        guard let recovery, let error = source.error, !error.isCancellation, !steps.children.cancelsNewChildren else {
            return
        }
        do {
            guard let made = try await steps.children.body?.call({ try recovery(error) }) else { return }
            lock.withLock { self.made = .success(made) }
            // Its share was counted from the beginning.
            try await steps.children.runChild(made, weight: Self.madeWeight)
        } catch {
            lock.withLock { made = .failure(error) }
        }
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
