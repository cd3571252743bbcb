import Foundation

/// Evaluates a condition before an operation runs.
final class ConditionPreparation: Preparation {
    private enum State {
        case idle
        case evaluating(Task<Void, Never>, for: ObjectIdentifier)
        case withdrawn
    }

    let stage = PreparationStage.condition
    private let condition: any OperationCondition
    private let state = Locked(State.idle)

    init(_ condition: any OperationCondition) {
        self.condition = condition
    }

    func prepare(_ operation: AsyncOperation) -> Bool {
        let condition = condition
        let task = Task.detached(priority: TaskPriority(operation.qualityOfService)) {
            await operation.evaluate(condition)
        }
        let isWithdrawn = state.withLock { state in
            if case .withdrawn = state { return true }
            state = .evaluating(task, for: ObjectIdentifier(operation))
            return false
        }
        if isWithdrawn { task.cancel() }
        return false
    }

    func withdraw() {
        let previous = state.withLock { exchange(&$0, with: .withdrawn) }
        if case .evaluating(let task, _) = previous { task.cancel() }
    }

    var waitDescription: String? {
        let name = condition.name
        if case .evaluating(_, let operation) = state.withLock(\.self),
            let prerequisite = RunningPrerequisites.shared.prerequisite(awaitedBy: operation)
        {
            let text = "running “\(prerequisite.displayName)” for its condition “\(name)”"
            return text + ((prerequisite as? AsyncOperation)?.resourceWait.map { ", which is \($0)" } ?? "")
        }
        return "evaluating its condition “\(name)”"
    }
}

extension AsyncOperation {
    /// What the operation requires and waits for, in words. Not what a condition of it waits for, which would have no bound.
    fileprivate final var resourceWait: String? {
        let preparation = withState { $0.preparations?.awaited }
        return preparation?.stage == .requirement ? preparation?.waitDescription : nil
    }

    fileprivate final var awaitsMain: Bool { withState(\.lifecycle.awaitsMain) }

    /// Evaluates a condition, in a task of its own, and goes on or ends.
    fileprivate final func evaluate(_ condition: any OperationCondition) async {
        let answer = await condition.answer(for: self)
        // The operation has ended, or waits for its children only. Or else the evaluation itself has cancelled its task.
        if Task.isCancelled || !awaitsMain { return cancel() }
        do {
            switch try answer.get() {
            case .satisfied: preparationEnded()
            case .failed(let error): throw error
            case .skipped: cancel()
            }
        } catch {
            let failure =
                (error as? PrerequisiteFailure)?.error(of: self, condition)
                ?? .failed(operation: displayName, condition: condition.name, error: error)
            preparationEnded(withError: failure)
        }
    }
}

extension OperationCondition {
    /// Runs the prerequisite, if there is one, and then evaluates the condition. Does nothing more once the task is cancelled.
    ///
    /// - Throws: `PrerequisiteFailure` if the prerequisite does not succeed. `CancellationError` if the task is cancelled.
    func result(for operation: AsyncOperation) async throws -> ConditionResult {
        try Task.checkCancellation()
        // One that does not equal itself could not be found again.
        if let id = sharingID, id == id {
            try await SharedPrerequisites.shared.run(id, for: operation) { ask(operation) }
        } else if let prerequisite = ask(operation) {
            try Task.checkCancellation()
            let isNew = RunningPrerequisites.shared.began(prerequisite)
            if isNew { RunningPrerequisites.shared.waits(operation, for: prerequisite) }
            try await prerequisite.runAsPrerequisite(isNew: isNew)
        }
        try Task.checkCancellation()
        return try await evaluate(for: operation)
    }

    /// Asks for the prerequisite. Code of the user's may end or cancel the operation meanwhile, and the thread that has started
    /// it may not have come to cancelling the task then.
    private func ask(_ operation: AsyncOperation) -> Operation? {
        let prerequisite = prerequisite(for: operation)
        if !operation.awaitsMain { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
        return prerequisite
    }

    /// The result, or what is thrown instead.
    func answer(for operation: AsyncOperation) async -> Result<ConditionResult, any Error> {
        do { return .success(try await result(for: operation)) } catch { return .failure(error) }
    }
}

/// Why the prerequisite of a condition has not succeeded.
enum PrerequisiteFailure: Error {
    case failed(prerequisite: String, cause: any Error)
    /// It would have waited for itself.
    case cycle(prerequisite: String)

    func error(of operation: AsyncOperation, _ condition: any OperationCondition) -> ConditionError {
        switch self {
        case .failed(let prerequisite, let cause):
            .prerequisiteFailed(
                operation: operation.displayName, condition: condition.name, prerequisite: prerequisite, error: cause)
        case .cycle(let prerequisite):
            .prerequisiteCycle(
                operation: operation.displayName, condition: condition.name, prerequisite: prerequisite)
        }
    }
}

extension Operation {
    /// Runs the operation on a queue of its own. Cancelling the task cancels it.
    ///
    /// - Parameter isNew: Whether it does not run as a prerequisite already. If so, its end is reported.
    /// - Throws: `PrerequisiteFailure`.
    func runAsPrerequisite(isNew: Bool) async throws {
        defer { if isNew { RunningPrerequisites.shared.ended(self) } }
        do {
            try await PrivateQueue().run(self, ifUnused: isNew)
        } catch {
            throw PrerequisiteFailure.failed(prerequisite: displayName, cause: error)
        }
    }
}
