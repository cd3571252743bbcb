import Foundation

/// A run of a coordinator that a task waits for, and cancels when it is cancelled.
final class AwaitedRun: Sendable {
    private struct State {
        var continuation: CheckedContinuation<[(any Error)?], Never>?
        /// The run, until it is finished. A coordinator with its own implementation has none.
        var run: CoordinatedRun?
        var isCancelled = false
    }

    private let state = Locked(State())

    /// Starts the operations. To be called once.
    func start(
        _ operations: [Operation], by coordinator: some OperationCoordinator,
        continuation: CheckedContinuation<[(any Error)?], Never>
    ) {
        state.withLock { $0.continuation = continuation }
        let run = WorkRequest.work(of: coordinator, by: CoordinatedRun.$request) {
            coordinator.performOperations(operations) { [self] in finish($0) }
        }
        guard let run else { return }
        let isCancelled = state.withLock { state in
            state.run = run
            return state.isCancelled
        }
        if isCancelled { run.cancel() }
        run.start { [self] in finish($0) }
    }

    /// Cancels the run, also one that has not started.
    func cancel() {
        let run = state.withLock { state in
            state.isCancelled = true
            return state.run
        }
        run?.cancel()
    }

    /// The first call counts: a coordinator's own implementation may report its end repeatedly.
    private func finish(_ errors: [(any Error)?]) {
        let (continuation, run) = state.withLock { ($0.continuation.take(), $0.run.take()) }
        continuation?.resume(returning: errors)
        withExtendedLifetime(run) {}
    }
}
