import Foundation

/// Evaluates a condition before an operation runs.
final class ConditionPreparation: Preparation {
    private enum State {
        case idle
        case evaluating(Task<Void, Never>)
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
            state = .evaluating(task)
            return false
        }
        if isWithdrawn { task.cancel() }
        return false
    }

    func withdraw() {
        let previous = state.withLock { exchange(&$0, with: .withdrawn) }
        if case .evaluating(let task) = previous { task.cancel() }
    }

    var waitDescription: String? { "evaluating its condition “\(condition.name)”" }
}

extension AsyncOperation {
    /// Evaluates a condition, in a task of its own, and goes on or ends.
    fileprivate final func evaluate(_ condition: any OperationCondition) async {
        do {
            switch try await condition.result(for: self) {
            case .satisfied: preparationEnded()
            case .failed(let error): throw error
            case .skipped: cancel()
            }
        } catch {
            // The operation has ended, or waits for its children only.
            if Task.isCancelled { return }
            let failure =
                (error as? PrerequisiteFailure)?.error(of: self, condition)
                ?? .failed(operation: displayName, condition: condition.name, error: error)
            preparationEnded(withError: failure)
        }
    }
}

extension OperationCondition {
    /// Runs the prerequisite, if there is one, and then evaluates the condition.
    ///
    /// - Throws: `PrerequisiteFailure` if the prerequisite does not succeed.
    func result(for operation: AsyncOperation) async throws -> ConditionResult {
        if let sharingID {
            try await SharedPrerequisites.shared.run(sharingID) { prerequisite(for: operation) }
        } else if let prerequisite = prerequisite(for: operation) {
            try await prerequisite.runAsPrerequisite()
        }
        return try await evaluate(for: operation)
    }
}

/// The prerequisite of a condition has not succeeded.
struct PrerequisiteFailure: Error {
    let prerequisite: String
    let cause: any Error

    func error(of operation: AsyncOperation, _ condition: any OperationCondition) -> ConditionError {
        .prerequisiteFailed(
            operation: operation.displayName, condition: condition.name, prerequisite: prerequisite, error: cause)
    }
}

extension Operation {
    /// Runs the operation on a queue of its own. Cancelling the task cancels it.
    fileprivate func runAsPrerequisite() async throws {
        do {
            try await OperationQueue().run(self)
        } catch {
            throw PrerequisiteFailure(prerequisite: displayName, cause: error)
        }
    }
}

/// The prerequisites that run and are shared.
///
/// An actor, because to compare identifiers is code of the user's, which must not be called under a lock.
private actor SharedPrerequisites {
    static let shared = SharedPrerequisites()

    struct Key: Hashable, @unchecked Sendable {
        let id: AnyHashable
    }

    private struct Run {
        let task: Task<Void, any Error>
        var waiterCount: Int
    }

    private var runs: [Key: Run] = [:]

    /// Waits for the run that is shared, or for one of an operation that is made. Ends it when the last task that waits for it is
    /// cancelled.
    nonisolated func run(_ id: AnyHashable, make: () -> Operation?) async throws {
        let key = Key(id: id)
        var joined = await join(key)
        if joined == nil, let operation = make() { joined = await start(key, UncheckedSendable(operation)) }
        guard let task = joined else { return }
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            Task { await leave(key, task) }
        }
    }

    private func join(_ key: Key) -> Task<Void, any Error>? {
        runs[key]?.waiterCount += 1
        return runs[key]?.task
    }

    /// Another condition may have started a run meanwhile. Then the operation is not needed.
    private func start(_ key: Key, _ operation: UncheckedSendable<Operation>) -> Task<Void, any Error> {
        if let task = join(key) { return task }
        let task = Task.detached {
            let result: Result<Void, any Error>
            do { result = .success(try await operation.value.runAsPrerequisite()) } catch { result = .failure(error) }
            await self.ended(key)
            try result.get()
        }
        runs[key] = Run(task: task, waiterCount: 1)
        return task
    }

    private func leave(_ key: Key, _ task: Task<Void, any Error>) {
        guard let run = runs[key], run.task == task else { return }
        runs[key]?.waiterCount -= 1
        if run.waiterCount > 1 { return }
        runs[key] = nil
        task.cancel()
    }

    /// Only the run that is there can end: one that was left is not there any more, but may be followed by another.
    private func ended(_ key: Key) {
        if !Task.isCancelled { runs[key] = nil }
    }
}
