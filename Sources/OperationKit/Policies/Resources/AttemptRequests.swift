// An operation that makes attempts gives what it requires to each of them, and holds nothing between two.

/// An operation that takes over what it requires, for its attempts to request.
protocol AttemptingOperation: AsyncOperation {
    /// Takes over what the operation requires. Called at most once, with nothing locked, after the conditions and before `main()`.
    ///
    /// - Returns: `false` if the operation is to request it as others do.
    func takeRequest(_ request: ResourceRequest) -> Bool
}

extension AsyncOperation {
    /// Adds all that another operation requires to what this one requires. This one has not started.
    final func require(_ request: ResourceRequest) {
        changeRequirements(named: "of an attempt") { $0.add(request) }
    }
}

extension ResourceRequest {
    /// Requests everything for an attempt that is no operation of its own, and suspends until it is granted.
    ///
    /// Cancelling the task ends the wait with `CancellationError`.
    ///
    /// - Parameter operation: The operation whose attempt it is.
    /// - Returns: What the attempt holds until ``AttemptLease/end(_:)``.
    /// - Throws: ``ResourceError``, ``CircuitOpenError``.
    func granted(toAttemptOf operation: AsyncOperation) async throws -> AttemptLease {
        let holder = AttemptLease.Holder()
        holder.name = operation.displayName
        holder.clock = operation.clock
        holder.hideFromObservers()
        holder.require(self)
        let isGranted = await withCancellationDelivered {
            holder.cancel()
        } during: {
            await withCheckedContinuation { holder.start($0) }
        }
        if !isGranted, let error = holder.error { throw error }
        return AttemptLease(holder)
    }
}

/// What an attempt holds of what it requires.
struct AttemptLease: Sendable {
    private let holder: Holder

    fileprivate init(_ holder: Holder) {
        self.holder = holder
    }

    /// Gives everything back. Called once, with the error of the attempt, which circuit breakers count.
    func end(_ error: (any Error)?) {
        holder.finish(withError: error)
    }

    /// Requests what the attempt requires as its own, and has it until it is finished.
    fileprivate final class Holder: AsyncOperation, @unchecked Sendable {
        private let continuation = Locked<CheckedContinuation<Bool, Never>?>(nil)

        func start(_ continuation: CheckedContinuation<Bool, Never>) {
            self.continuation.withLock { $0 = continuation }
            asyncCompletionBlock = { [weak self] _ in self?.resume(isGranted: false) }
            start()
        }

        override func main() {
            resume(isGranted: true)
        }

        override func didCancel() {}

        private func resume(isGranted: Bool) {
            continuation.withLock { $0.take() }?.resume(returning: isGranted)
        }
    }
}
