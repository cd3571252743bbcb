import Foundation

// What is done right before `main()`: on the thread that starts the operation, after all that it depends on has
// finished, without the lock.
extension AsyncOperation {
    /// Gets the operation as an argument. It must not hold what the operation depends on: that would be freed by nested
    /// calls. An error ends the operation without its `main()`.
    typealias Preparation = @Sendable (AsyncOperation) throws -> Void

    /// Adds a preparation, to be done after those that are there. An operation that has begun has none to come.
    ///
    /// - Parameter isLast: Whether it is to be done after those that are added later, too.
    final func addPreparation(isLast: Bool = false, _ preparation: @escaping Preparation) {
        withState { state in
            guard state.lifecycle.isPending else { return }
            if isLast { state.lastPreparations += 1 }
            let index = state.preparations.count - (isLast ? 0 : Int(state.lastPreparations))
            state.preparations.insert(preparation, at: index)
        }
    }

    /// Does what has to be done before the work, then the work, unless the operation was given an outcome meanwhile: by
    /// one of the preparations, or by another thread, since it reads as executing.
    ///
    /// - Parameter preparations: Each is released after its call.
    final func runMain(after preparations: inout [Preparation]) -> Lifecycle.Action? {
        preparations.reverse()
        while withState({ $0.lifecycle.mayRunMain }) {
            guard let preparation = preparations.popLast() else {
                startChildrenOrWork()
                return withState { $0.lifecycle.mainReturned() }
            }
            do { try preparation(self) } catch { finish(withError: error) }
        }
        return withState { $0.lifecycle.mainSkipped() }
    }

    /// Ends an operation that cannot begin its work, from inside its `main()`. A composite's children finish first.
    final func refuseToRun(_ error: any Error) {
        finish(withError: error)
        perform(withState { $0.lifecycle.mainSkipped() })
    }
}
