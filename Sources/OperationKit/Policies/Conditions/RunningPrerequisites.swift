import Foundation

/// The prerequisites that run, and the operations that wait for them.
final class RunningPrerequisites: Sendable {
    static let shared = RunningPrerequisites()

    private struct Run: @unchecked Sendable {
        let prerequisite: Operation
        var waiting: [ObjectIdentifier: AsyncOperation] = [:]
    }

    private struct State {
        var runs: [ObjectIdentifier: Run] = [:]
        /// For each operation that waits the prerequisite. The operations are held by the runs.
        var awaited: [ObjectIdentifier: ObjectIdentifier] = [:]
    }

    private let state = Locked(State())

    /// A prerequisite is about to run.
    ///
    /// - Returns: Whether it does not run already.
    func began(_ prerequisite: Operation) -> Bool {
        state.withLock { state in
            let id = ObjectIdentifier(prerequisite)
            if state.runs[id] != nil { return false }
            state.runs[id] = Run(prerequisite: prerequisite)
            return true
        }
    }

    /// A prerequisite has ended that had begun.
    func ended(_ prerequisite: Operation) {
        // Release the operations after unlocking; their deinitializers may run arbitrary code.
        let run = state.withLock { state in
            let run = state.runs.removeValue(forKey: ObjectIdentifier(prerequisite))
            run?.waiting.keys.forEach { state.awaited[$0] = nil }
            return run
        }
        withExtendedLifetime(run) {}
    }

    /// An operation waits for a prerequisite that has begun. It waits for one at a time.
    func waits(_ operation: AsyncOperation, for prerequisite: Operation) {
        state.withLock { state in
            // It may have ended meanwhile.
            guard state.runs[ObjectIdentifier(prerequisite)] != nil else { return }
            state.runs[ObjectIdentifier(prerequisite)]?.waiting[ObjectIdentifier(operation)] = operation
            state.awaited[ObjectIdentifier(operation)] = ObjectIdentifier(prerequisite)
        }
    }

    /// An operation waits no longer. Callers hold the operation.
    func waitEnded(_ operation: AsyncOperation) {
        state.withLock { state in
            let id = ObjectIdentifier(operation)
            if let prerequisite = state.awaited.removeValue(forKey: id) { state.runs[prerequisite]?.waiting[id] = nil }
        }
    }

    /// The prerequisite that an operation waits for.
    func prerequisite(awaitedBy operation: ObjectIdentifier) -> Operation? {
        state.withLock { state in state.awaited[operation].flatMap { state.runs[$0]?.prerequisite } }
    }

    /// Whether a prerequisite that runs would wait for itself if an operation waited for it: the operation is the prerequisite, or
    /// ends only after it.
    ///
    /// Complexity: linear in the operations that are found on the way.
    func wouldWaitForItself(_ prerequisite: Operation, if operation: AsyncOperation) -> Bool {
        operation === prerequisite || operationsAround(operation).contains { $0 === prerequisite }
    }

    /// The operations that end only after an operation, as far as that is known: those that it is inside of, those that wait for
    /// one of these or for itself, as the prerequisite of a condition, and what is around those.
    ///
    /// Complexity: linear in the operations that are found.
    func operationsAround(_ operation: AsyncOperation) -> [AsyncOperation] {
        var found: Set = [ObjectIdentifier(operation)]
        var around: [AsyncOperation] = []
        var remaining = [operation]
        while let next = remaining.popLast() {
            for operation in [next] + Array(next.enclosingOperations) {
                if operation !== next, found.insert(ObjectIdentifier(operation)).inserted { around.append(operation) }
                let waiting = state.withLock { state in
                    state.runs[ObjectIdentifier(operation)].map { Array($0.waiting.values) } ?? []
                }
                for operation in waiting where found.insert(ObjectIdentifier(operation)).inserted {
                    around.append(operation)
                    remaining.append(operation)
                }
            }
        }
        return around
    }
}
