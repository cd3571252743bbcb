import Foundation

extension IOOperation {
    /// Returns an operation that runs this one, and makes its output from this one's output.
    ///
    /// ```swift
    /// let load = IOBlockOperation<String, [Int]>(name: "load") { $0.utf8.map(Int.init) }
    /// let sum = load.map { $0.reduce(0, +) }
    /// ```
    ///
    /// Start the new operation instead of this one; it may be a step of a macro. It gets the input, and begins with the one
    /// that this operation has now. Bind the input of the new operation, not of this one, before or after. It ends with
    /// ``ChainError/alreadyUsed(operation:chain:)`` if this operation is part of another one already. Cancelling the
    /// new operation cancels this one. If this one fails, the new one ends with the same error.
    ///
    /// Where the compiler gives up on a long chain, give it the type of each new output: `map(to: Int.self) { … }`.
    ///
    /// - Parameters:
    ///   - result: The type of the new output, if it is to be given.
    ///   - transform: Makes the new output. Called once if this operation succeeds, on the thread that ended it, or on the one
    ///     that was still in its `start()` then; what it throws is the error. Released at the end, and this operation with it.
    /// - Returns: The new operation.
    public final func map<NewOutput: Sendable>(
        to result: NewOutput.Type = NewOutput.self, _ transform: @escaping @Sendable (Output) throws -> NewOutput
    ) -> IOOperation<Input, NewOutput> {
        makeDerived { result in try transform(result.get()) }
    }

    /// Returns an operation that runs this one, and ends with another error in place of this one's.
    ///
    /// Start the new operation instead of this one. It includes this one as that of ``map(to:_:)`` does.
    ///
    /// - Parameter transform: Makes the new error. Called once if this operation fails, on the thread on which
    ///   ``map(to:_:)`` would call its closure, also if the error is the reason with which this operation itself was
    ///   cancelled; not called for an error whose `isCancellation` is true. Released at the end.
    /// - Returns: The new operation.
    public final func mapError(
        _ transform: @escaping @Sendable (any Error) -> any Error
    ) -> IOOperation<Input, Output> {
        recover { error in throw transform(error) }
    }

    /// Returns an operation that runs this one, and replaces its failure by a value.
    ///
    /// ```swift
    /// let settings = IOBlockOperation<String, Data>(name: "settings") { path in
    ///     try Data(contentsOf: URL(fileURLWithPath: path))
    /// }
    /// let withDefaults = settings.recover { _ in Data("{}".utf8) }
    /// ```
    ///
    /// Start the new operation instead of this one. It includes this one as that of ``map(to:_:)`` does.
    ///
    /// - Parameter recovery: Makes an output from the error, or throws. Called once if this operation fails, on the
    ///   thread on which ``map(to:_:)`` would call its closure, also if the error is the reason with which this
    ///   operation itself was cancelled; not called for an error whose `isCancellation` is true,
    ///   because that is no failure. Released at the end.
    /// - Returns: The new operation.
    public final func recover(
        _ recovery: @escaping @Sendable (any Error) throws -> Output
    ) -> IOOperation<Input, Output> {
        makeDerived { result in
            do {
                return try result.get()
            } catch {
                if error.isCancellation { throw error }
                return try recovery(error)
            }
        }
    }

    private func makeDerived<NewOutput: Sendable>(
        _ transform: @escaping @Sendable (Result<Output, any Error>) throws -> NewOutput
    ) -> IOOperation<Input, NewOutput> {
        DerivedOperation(
            self,
            result: { source, maySucceed in
                // Otherwise the closure is not called, even if this operation has succeeded.
                guard maySucceed, let result = source?.result else { throw CancellationError() }
                return try transform(result)
            })
    }

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
    ///   thread that it may block, also if the error is the reason with which this operation itself was cancelled; not called for
    ///   an error whose `isCancellation` is true, because that is no failure, nor once the new operation was cancelled. Released
    ///   at the end.
    /// - Returns: The new operation.
    public final func recoverRun<Made: OutputOperation>(
        _ recovery: @escaping @Sendable (any Error) throws -> Made
    ) -> IOOperation<Input, Output> where Made.Output == Output {
        let made = Locked<Result<Made, any Error>?>(nil)
        return DerivedOperation(self) { source, children in
            guard let error = source.error, !error.isCancellation, !children.cancelsNewChildren else { return }
            do {
                let operation = try await children.call { try recovery(error) }
                made.withLock { $0 = .success(operation) }
                // Its share was counted from the beginning.
                try await children.runChild(operation, weight: 1)
            } catch {
                // Released after unlocking.
                _ = made.withLock { exchange(&$0, with: .failure(error)) }
            }
        } result: { source, _ in
            if let made = try made.withLock({ $0.take() })?.get() {
                if let error = made.error { throw made.skippedError ?? error }
                if let output = made.output { return output }
                throw made.missingOutput
            }
            if let output = source?.output { return output }
            throw source?.skippedError ?? source?.error ?? CancellationError()
        }
    }
}
