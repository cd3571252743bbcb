import Foundation

/// The prerequisites that are shared: ``SharedRunStateMachine`` decides, and what it decides is done here.
///
/// An actor, because to compare identifiers is code of the user's, which must not be called under a lock.
actor SharedPrerequisites {
    static let shared = SharedPrerequisites()

    private struct Key: Hashable, @unchecked Sendable {
        let id: AnyHashable
    }

    private enum Turn { case ask, goOn }

    private struct Wait {
        let operation: AsyncOperation
        let continuation: CheckedContinuation<Turn, any Error>
    }

    private struct Run {
        var machine = SharedRunStateMachine<ObjectIdentifier>()
        /// Those that wait, other than the one that asks.
        var waiting: [ObjectIdentifier: Wait] = [:]
        /// What runs, and the task in which it does.
        var current: (prerequisite: UncheckedSendable<Operation>, task: Task<Void, Never>)?
    }

    private var runs: [Key: Run] = [:]

    /// Waits for the run that is shared, or asks for the prerequisite and has it run. A wait ends when its task is cancelled, and
    /// the run does with the last wait.
    ///
    /// - Parameters:
    ///   - id: What the run is shared by. It equals itself.
    ///   - operation: The operation that waits.
    ///   - ask: Returns the prerequisite. Called once in each run, for one of those that wait for it.
    /// - Throws: `PrerequisiteFailure` if it does not succeed, or would wait for itself. `CancellationError` if the task is
    ///   cancelled.
    nonisolated func run(_ id: AnyHashable, for operation: AsyncOperation, ask: () -> Operation?) async throws {
        let key = Key(id: id)
        let waiter = WaiterID()
        defer { RunningPrerequisites.shared.waitEnded(operation) }
        try await withTaskCancellationHandler {
            guard try await turn(of: waiter, operation, key) == .ask else { return }
            if Task.isCancelled {
                await declined(key, by: waiter)
                throw CancellationError()
            }
            try await answered(key, by: waiter, operation, ask().map { UncheckedSendable($0) })
        } onCancel: {
            Task { await left(waiter, key) }
        }
    }

    // MARK: - Events

    private func turn(of waiter: WaiterID, _ operation: AsyncOperation, _ key: Key) async throws -> Turn {
        // If the task is cancelled later, `left` is called later.
        try Task.checkCancellation()
        if let prerequisite = runs[key]?.current?.prerequisite.value {
            if RunningPrerequisites.shared.wouldWaitForItself(prerequisite, if: operation) {
                throw PrerequisiteFailure.cycle(prerequisite: prerequisite.displayName)
            }
            RunningPrerequisites.shared.waits(operation, for: prerequisite)
        }
        let id = ObjectIdentifier(waiter)
        if runs[key, default: Run()].machine.arrived(id) == .ask(id) { return .ask }
        return try await wait(id, operation, key)
    }

    private func answered(
        _ key: Key, by waiter: WaiterID, _ operation: AsyncOperation, _ prerequisite: UncheckedSendable<Operation>?
    ) async throws {
        let id = ObjectIdentifier(waiter)
        let isCancelled = Task.isCancelled
        if isCancelled { _ = runs[key]?.machine.left(id) }
        switch runs[key]?.machine.answered(hasPrerequisite: prerequisite != nil) {
        case .run?:
            if let prerequisite { run(prerequisite, key, for: isCancelled ? nil : operation) }
        case .resume(let waiters)?:
            resume(waiters, key, with: .success(.goOn))
            removeIfIdle(key)
            return
        case .ask?, .stop?, nil:
            removeIfIdle(key)
        }
        if isCancelled { throw CancellationError() }
        _ = try await wait(id, operation, key)
    }

    private func declined(_ key: Key, by waiter: WaiterID) {
        goOn(runs[key]?.machine.declined(by: ObjectIdentifier(waiter)), key)
    }

    private func left(_ waiter: WaiterID, _ key: Key) {
        let id = ObjectIdentifier(waiter)
        if runs[key]?.machine.left(id) == .stop { runs[key]?.current?.task.cancel() }
        resume([id], key, with: .failure(CancellationError()))
    }

    private func ended(_ key: Key, _ prerequisite: UncheckedSendable<Operation>, _ result: Result<Turn, any Error>) {
        runs[key]?.current = nil
        let action = runs[key]?.machine.ended()
        if case .resume(let waiters)? = action { resume(waiters, key, with: result) }
        goOn(action, key)
    }

    // MARK: - Actions

    private func wait(_ id: ObjectIdentifier, _ operation: AsyncOperation, _ key: Key) async throws -> Turn {
        try await withCheckedThrowingContinuation { continuation in
            runs[key]?.waiting[id] = Wait(operation: operation, continuation: continuation)
        }
    }

    private func resume(_ waiters: Set<ObjectIdentifier>, _ key: Key, with result: Result<Turn, any Error>) {
        for waiter in waiters { runs[key]?.waiting.removeValue(forKey: waiter)?.continuation.resume(with: result) }
    }

    /// The next one asks, or nothing is left.
    private func goOn(_ action: SharedRunStateMachine<ObjectIdentifier>.Action?, _ key: Key) {
        if case .ask(let waiter)? = action { resume([waiter], key, with: .success(.ask)) }
        removeIfIdle(key)
    }

    private func removeIfIdle(_ key: Key) {
        if runs[key]?.machine.state == .idle { runs[key] = nil }
    }

    /// Those that wait are known before the prerequisite starts, which may require what is around them.
    private func run(_ prerequisite: UncheckedSendable<Operation>, _ key: Key, for operation: AsyncOperation?) {
        let isNew = RunningPrerequisites.shared.began(prerequisite.value)
        if let operation { RunningPrerequisites.shared.waits(operation, for: prerequisite.value) }
        if isNew {
            runs[key]?.waiting.values.forEach {
                RunningPrerequisites.shared.waits($0.operation, for: prerequisite.value)
            }
        }
        let task = Task.detached {
            let result: Result<Turn, any Error>
            do {
                try await prerequisite.value.runAsPrerequisite(isNew: isNew)
                result = .success(.goOn)
            } catch {
                result = .failure(error)
            }
            await self.ended(key, prerequisite, result)
        }
        runs[key]?.current = (prerequisite, task)
    }
}
