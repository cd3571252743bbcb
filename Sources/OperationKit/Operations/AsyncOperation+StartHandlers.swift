import Foundation

// What is done right before `main()`: on the thread that starts the operation, after all that it depends on has
// finished, without the lock.
extension AsyncOperation {
    /// Gets the operation as an argument. It must not hold what the operation depends on: that would be freed by nested
    /// calls. An error ends the operation without its `main()`.
    typealias StartHandler = @Sendable (AsyncOperation) throws -> Void

    /// Adds a handler that is called after those that are there. Does nothing if the operation has begun.
    ///
    /// - Parameters:
    ///   - isLast: Whether it is called after those that are added later, too.
    ///   - handler: The handler.
    final func addStartHandler(isLast: Bool = false, _ handler: @escaping StartHandler) {
        withState { state in
            guard state.lifecycle.isPending else { return }
            if isLast { state.lastStartHandlers += 1 }
            let index = state.startHandlers.count - (isLast ? 0 : Int(state.lastStartHandlers))
            state.startHandlers.insert(handler, at: index)
        }
    }

    /// Does what has to be done before the work, then the work, unless the operation was given an outcome meanwhile: by
    /// one of the handlers, or by another thread, since it reads as executing.
    ///
    /// - Parameter startHandlers: The handlers in order. Each is removed before its call, and released after it.
    /// - Returns: What to do next, if anything, now that `main()` has returned or been skipped.
    final func runMain(after startHandlers: inout [StartHandler]) -> Lifecycle.Action? {
        startHandlers.reverse()
        while withState({ $0.lifecycle.isWorking }) {
            guard let handler = startHandlers.popLast() else {
                startChildrenOrWork()
                return withState { $0.lifecycle.mainReturned() }
            }
            do { try handler(self) } catch { finish(withError: error) }
        }
        return withState { $0.lifecycle.mainSkipped() }
    }

    /// Ends an operation that cannot begin its work, from inside its `main()`. A composite's children finish first.
    final func fail(beforeRunning error: any Error) {
        finish(withError: error)
        perform(withState { $0.lifecycle.mainSkipped() })
    }
}
