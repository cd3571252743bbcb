import Foundation

/// Evaluates a condition before an operation runs.
final class ConditionGate: StartGate {
    private enum State {
        case idle
        case evaluating(Task<Void, Never>, AsyncOperation)
        case answered(Result<ConditionResult, any Error>)
        case withdrawn
    }

    let order = GateOrder.checks
    private let condition: any OperationCondition
    private let state = Locked(State.idle)

    init(_ condition: any OperationCondition) {
        self.condition = condition
    }

    func enter(_ operation: AsyncOperation) throws -> Bool {
        switch state.withLock(\.self) {
        case .idle:
            guard let body = (condition as? ClosureCondition)?.immediateBody else { return false }
            return try pass(operation, .success(body(operation)))
        case .answered(let answer): return try pass(operation, answer)
        case .evaluating, .withdrawn: return false
        }
    }

    private func pass(_ operation: AsyncOperation, _ answer: Result<ConditionResult, any Error>) throws -> Bool {
        let error: any Error
        switch answer {
        case .success(.satisfied): return true
        case .success(.skipped):
            operation.cancel()
            return true
        case .success(.failed(let cause)), .failure(let cause): error = cause
        }
        if let failure = error as? PrerequisiteFailure {
            throw ConditionError.prerequisiteFailed(
                operation: operation.displayName, condition: condition.name, prerequisite: failure.prerequisite,
                error: failure.cause)
        }
        throw ConditionError.failed(operation: operation.displayName, condition: condition.name, error: error)
    }

    func wait(_ operation: AsyncOperation) {
        let priority = operation.qualityOfService.equivalents.priority
        // The task has to be stored before it ends, so it is created with the lock held. Nothing of it runs there.
        state.withLock { state in
            guard case .idle = state else { return }
            let task = startLibraryTask(priority: priority) { [condition, weak self] in
                let answer = await Result { try await condition.result(for: operation) }
                // The operation has ended, or the evaluation has cancelled its task.
                self?.evaluated(Task.isCancelled || !operation.awaitsMain ? .success(.skipped) : answer)
                operation.gateOpened()
            }
            state = .evaluating(task, operation)
        }
    }

    private func evaluated(_ answer: Result<ConditionResult, any Error>) {
        _ = state.withLock { state in
            if case .withdrawn = state { return state }
            return exchange(&state, with: .answered(answer))
        }
    }

    func withdraw() {
        let previous = state.withLock { exchange(&$0, with: .withdrawn) }
        if case .evaluating(let task, _) = previous { task.cancel() }
    }

    func waitDescription(namesHolders: Bool) -> String? {
        let name = condition.name
        if case .evaluating(_, let operation) = state.withLock(\.self),
            let helper = operation.prerequisite
        {
            // Not what a condition of it waits for, which would have no bound.
            let resourceWait = (helper.withState { $0.awaitedGate } as? ResourceLease)?
                .waitDescription(namesHolders: namesHolders)
            return "running “\(helper.displayName)” for its condition “\(name)”"
                + (resourceWait.map { ", which is \($0)" } ?? "")
        }
        return "evaluating its condition “\(name)”"
    }
}

extension AsyncOperation {
    fileprivate var awaitsMain: Bool { withState { $0.lifecycle.awaitsMain } }

    /// What runs for a condition at this time, if it is the library's.
    fileprivate var prerequisite: AsyncOperation? { withState { $0.gates?.helper } }

    /// Runs an operation on a queue of its own, for a condition. Cancelling the task cancels it.
    ///
    /// - Throws: `PrerequisiteFailure`.
    fileprivate func run(prerequisite: Operation) async throws {
        // One that has started, or helps another operation, belongs there, and one that is around this operation waits for it.
        let isUnused = !isInside(prerequisite) && setHelper(prerequisite as? AsyncOperation)
        defer { if isUnused { setHelper(nil) } }
        do {
            // In a cancelled task, running it cancels it first.
            if isAwaited(by: prerequisite) {
                if !(prerequisite is AsyncOperation) { prerequisite.holdUntilDependenciesEnd() }
                throw dependencyCycle(through: prerequisite)
            }
            try await PrivateQueue().run(prerequisite, ifUnused: isUnused)
        } catch {
            throw PrerequisiteFailure(prerequisite: prerequisite.displayName, cause: error)
        }
    }

    /// Whether another operation waits for this one, or for a composite around it, directly or through what it depends on, and
    /// the prerequisites of that.
    ///
    /// Complexity: linear in the operations that the other one waits for, and their dependencies.
    private func isAwaited(by operation: Operation) -> Bool {
        var dependencies = operation.dependencies
        var found: Set<ObjectIdentifier> = []
        while let next = dependencies.popLast() {
            if isInside(next) { return true }
            // One that has ended, or is about to, waits for nothing.
            if next.isFinished || next.isCancelled || !found.insert(ObjectIdentifier(next)).inserted { continue }
            dependencies += next.dependencies
            if let prerequisite = (next as? AsyncOperation)?.prerequisite { dependencies.append(prerequisite) }
        }
        return false
    }
}

extension OperationCondition {
    /// Runs the prerequisite, if there is one, and then evaluates the condition. Does nothing more once the task is cancelled.
    ///
    /// - Throws: `PrerequisiteFailure` if the prerequisite does not succeed. `CancellationError` if the task is cancelled.
    func result(for operation: AsyncOperation) async throws -> ConditionResult {
        try Task.checkCancellation()
        let prerequisite = try await runUserClosure { self.prerequisite(for: operation) }
        // The closure may have ended or cancelled the operation, and the thread that has started it may not have come to
        // cancelling the task then.
        if !operation.awaitsMain { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
        if let prerequisite { try await operation.run(prerequisite: prerequisite) }
        try Task.checkCancellation()
        return try await runUserTask { try await evaluate(for: operation) }
    }
}

/// The prerequisite of a condition has not succeeded.
private struct PrerequisiteFailure: Error {
    let prerequisite: String
    let cause: any Error
}
