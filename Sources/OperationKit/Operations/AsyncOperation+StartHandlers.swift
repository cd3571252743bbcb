import Foundation

// What is done right before `main()`: on the thread that starts the operation, after its dependencies have finished,
// without the lock.
extension AsyncOperation {
    /// A closure that is called with the operation right before its `main()`. If it throws, the operation ends with the
    /// error, and `main()` is not called. It must not hold the operation's dependencies: a chain of such closures would
    /// be freed by nested calls.
    typealias StartHandler = @Sendable (AsyncOperation) throws -> Void

    /// Adds a handler that is called after those that were added before. Does nothing once the operation has started.
    ///
    /// - Parameters:
    ///   - isLast: Whether it is called after those that are added later, too.
    ///   - handler: The handler.
    /// - Returns: Whether the operation has not begun, so that the handler will be called.
    @discardableResult
    final func addStartHandler(isLast: Bool = false, _ handler: @escaping StartHandler) -> Bool {
        withState { state in
            guard state.lifecycle.isPending else { return false }
            if isLast { state.lastStartHandlers += 1 }
            let index = state.startHandlers.count - (isLast ? 0 : Int(state.lastStartHandlers))
            state.startHandlers.insert(handler, at: index)
            return true
        }
    }

    /// Adds a handler from inside another one. It is called after all that were added before the start.
    final func addFinalStartHandler(_ handler: @escaping StartHandler) {
        withState { $0.startHandlers.append(handler) }
    }

    /// Calls the handlers, then starts the work. Stops when the operation is given an outcome: by one of the handlers,
    /// or by another thread, which may finish it as soon as it reads as executing.
    ///
    /// - Parameter startHandlers: The handlers in order. Each is removed before its call, and released after it.
    /// - Returns: What to do next, if anything, now that `main()` has returned or been skipped.
    final func runMain(after startHandlers: inout [StartHandler]) -> Lifecycle.Action? {
        startHandlers.reverse()
        while withState({ $0.isWorking(takingFinalHandlers: &startHandlers) }) {
            guard let handler = startHandlers.popLast() else {
                startChildrenOrWork()
                return withState { $0.lifecycle.mainReturned() }
            }
            do { try handler(self) } catch { finish(withError: error) }
        }
        return withState { $0.lifecycle.mainSkipped() }
    }

    /// Ends an operation that cannot start its work, from inside its `main()`. A composite's children finish first.
    final func fail(beforeRunning error: any Error) {
        finish(withError: error)
        perform(withState { $0.lifecycle.mainSkipped() })
    }
}

extension AsyncOperation.State {
    /// Whether the work may start. Handlers that were added by others are appended, in reverse order.
    fileprivate mutating func isWorking(takingFinalHandlers handlers: inout [AsyncOperation.StartHandler]) -> Bool {
        if !startHandlers.isEmpty {
            handlers.insert(contentsOf: startHandlers.reversed(), at: 0)
            startHandlers = []
        }
        return lifecycle.isWorking
    }
}
