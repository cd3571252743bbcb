import Foundation

// An operation that makes attempts gives what it requires to each of them, and holds nothing between two.

/// An operation that makes attempts.
protocol AttemptingOperation: AsyncOperation {
    /// Whether each attempt requests what the operation requires, and not the operation itself. Does not change.
    var requestsForAttempts: Bool { get }
}

extension AsyncOperation {
    /// What each attempt of the operation requires beside its own, from `main()` on.
    final var requestOfAttempts: ResourceRequest? {
        guard let operation = self as? any AttemptingOperation, operation.requestsForAttempts else { return nil }
        return (withState { $0.gates?.lease } as? ResourceLease)?.request
    }

    /// Adds all that another operation requires to what this one requires. This one has not started.
    final func require(_ request: ResourceRequest?) {
        if let request { changeRequirements(named: "of an attempt") { $0.add(request) } }
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
        holder.queuePriority = operation.queuePriority
        holder.clock = operation.clock
        holder.hideFromObservers()
        holder.require(self)
        operation.setHelper(holder)
        let isGranted = await withCancellationDelivered {
            holder.cancel()
        } during: {
            await withCheckedContinuation { holder.start($0) }
        }
        if !isGranted, let error = holder.error { throw error }
        return AttemptLease(holder: holder)
    }
}

/// What an attempt holds of what it requires.
struct AttemptLease: Sendable {
    fileprivate let holder: Holder

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

        private func resume(isGranted: Bool) {
            continuation.withLock { $0.take() }?.resume(returning: isGranted)
        }
    }
}
