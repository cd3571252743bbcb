#if DEBUG
import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// An operation that a task runs and waits for, and whose work a lock of the user's guards: it is taken where the work
/// ends, and where it is stopped.
final class AwaitedSubject: ExplorationSubject, @unchecked Sendable {
    /// How the task comes to wait for the operation.
    enum Kind: CaseIterable, Sendable {
        case queue, compoundOnQueue, coordinator
    }

    private struct Record {
        var mains = 0
        var completions = 0
        /// Whether the task had been cancelled before it began.
        var isCancelledBefore = false
        var hasBegun = false
        var hasReturned = false
        /// Whether the task went on before the operation had ended, or with another outcome.
        var isLeftBehind = false
        var isCancelled = false
        var problems: [String] = []
    }

    private struct Coordinator: SequentialOperationCoordinator {}

    private let kind: Kind
    private let record: Shared<Record>
    private let users: UsersLock
    private let operation: ScriptedOperation
    private let queue: OperationQueue
    private let interleaving: Interleaving
    private let task = Shared<Task<Void, Never>?>(nil)

    init(_ kind: Kind, _ interleaving: Interleaving) {
        self.kind = kind
        self.interleaving = interleaving
        let record = Shared(Record())
        self.record = record
        let users = UsersLock()
        self.users = users
        operation = ScriptedOperation(
            "awaited",
            main: { _ in
                record.change { $0.mains += 1 }
                VirtualThread.place("main")
            },
            didCancel: { operation in
                VirtualThread.place("hook")
                users.withLock { operation.finish(withError: CancellationError()) }
            })
        operation.asyncCompletionBlock = { _ in
            VirtualThread.place("completion")
            record.change { $0.completions += 1 }
        }
        queue = VirtualThreadQueue(interleaving)
        interleaving.leaks.track(operation, "the operation")
        interleaving.leaks.track(queue, "the queue")
    }

    /// The work ends, with the lock held.
    func end() {
        users.withLock { _ = operation.finish() }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func beginTask() {
        let new = Task(executorPreference: VirtualThreadExecutor(interleaving)) { await self.run() }
        task.value = new
    }

    func cancelTask() {
        VirtualThread.withRuntimeLock { task.value?.cancel() }
        record.change {
            $0.isCancelled = true
            $0.isCancelledBefore = !$0.hasBegun
        }
    }

    private func run() async {
        record.change { $0.hasBegun = true }
        switch kind {
        case .queue:
            await expectEnd { try await queue.run(operation) }
        case .compoundOnQueue:
            let compound = CompoundOperation(name: "compound", operations: [operation])
            interleaving.leaks.track(compound, "the compound")
            await expectEnd { try await queue.run(compound) }
        case .coordinator:
            let errors = await Coordinator().performOperations([operation])
            await expectEnd { if let error = errors[0] { throw error } }
        }
        record.change { $0.hasReturned = true }
    }

    private func expectEnd(of body: () async throws -> Void) async {
        var thrown: (any Error)?
        do { try await body() } catch { thrown = error }
        let isFinished = VirtualThread.inOneStep { operation.isFinished }
        let hasFailed = operation.error != nil
        // A compound that is cancelled when its child has just succeeded was cancelled.
        let isRight = isFinished && (hasFailed == (thrown != nil) || thrown != nil && kind == .compoundOnQueue)
        record.change {
            if thrown != nil, !$0.isCancelled { $0.problems.append("threw without a cancellation") }
            if isRight { return }
            // An operation that had not been started is not waited for, and never runs.
            $0.isLeftBehind = thrown != nil && kind != .coordinator
            if !$0.isLeftBehind { $0.problems.append("\(text(thrown)), finished \(isFinished), failed \(hasFailed)") }
        }
    }

    func endAll() {
        let isFinished = VirtualThread.inOneStep { operation.isFinished }
        record.change { if $0.isCancelled, !isFinished { $0.problems.append("the cancellation is lost") } }
        if !isFinished { end() }
    }

    func problems() -> [String] {
        task.value = nil
        let record = record.value
        var problems = record.problems
        if !record.hasReturned { problems.append("the task goes on waiting") }
        if record.completions != 1 { problems.append("completions: \(record.completions)") }
        if record.isCancelledBefore, record.mains > 0 { problems.append("it ran, though cancelled before") }
        if record.isLeftBehind, record.mains > 0 { problems.append("it ran, though the task did not wait for it") }
        return problems
    }
}

/// A lock as users have them. A virtual thread that waits for it lets the others go on.
final class UsersLock: @unchecked Sendable {
    private var isHeld = false

    func withLock(_ body: () -> Void) {
        VirtualThread.wait("the user's lock") { !self.isHeld }
        isHeld = true
        body()
        isHeld = false
    }
}
#endif
