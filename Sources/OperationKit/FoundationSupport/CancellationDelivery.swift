/// Calls a body, and a handler if the current task is cancelled: before the body if the task is cancelled already, and
/// otherwise soon after its cancellation, on another thread.
///
/// The runtime calls the handler of its own `withTaskCancellationHandler` inside `Task.cancel()`, with a lock of the
/// task held that resuming the task takes too. Work that the handler asks to stop may be waiting for a lock of its own,
/// which a thread holds that is about to resume the task. So wherever cancelling a task cancels an operation, which
/// calls its ``AsyncOperation/didCancel()``, it does so through this function. A handler that only resumes a
/// continuation, as that of ``AsyncOperation/finished()``, does not need it.
///
/// - Parameters:
///   - isolation: The actor of the caller, where the body runs.
///   - handler: Called at most once, and without a lock. Calls for different tasks may come in any order.
///   - body: What may be cancelled. It may return before the handler has been called.
/// - Returns: What the body returns.
func withCancellationDelivered<Value>(
    isolation: isolated (any Actor)? = #isolation, to handler: @escaping @Sendable () -> Void,
    during body: () async throws -> Value
) async rethrows -> Value {
    if Task.isCancelled {
        handler()
        return try await body()
    }
    return try await withTaskCancellationHandler(operation: body) {
        DedicatedThreads.deliveries.performAsync(handler)
    }
}
