#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// The turn of a closure on a queue against what keeps it from running, in many orders of their steps.
@Suite("Interleavings of the turn of a closure", .serialized, .takesTurns, .hangGuard)
struct QueueSlotInterleavingTests {
    private static let cancelTask = Role<QueueSlotSubject>("cancel task") { $0.cancelTask() }
    private static let cancelOperations = Role<QueueSlotSubject>("cancel operations") { $0.cancelOperations() }
    private static let next = Role<QueueSlotSubject>("next") { $0.addNext() }

    @Test(
        "The turn and what cancels the task or the operation: one of them wins, and the place is given back",
        arguments: [[cancelTask, next], [cancelOperations], [cancelTask, cancelOperations]], [false, true])
    private func cancelled(roles: [Role<QueueSlotSubject>], isFailing: Bool) async {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        await Scene("closure, \(roles.map(\.name)), failing: \(isFailing)", roles) {
            QueueSlotSubject(isFailing: isFailing)
        }.expectNoProblems(samples: (40, 30))
    }
}

/// A task that runs a closure on a narrow queue, and what comes after it there.
private final class QueueSlotSubject: ExplorationSubject, @unchecked Sendable {
    private struct Record {
        var runs = 0
        var outcomes: [String] = []
        /// Whether the closure was given a reason not to run.
        var isCancelled = false
        var hasNext = false
        var problems: [String] = []
    }

    private let record = Shared(Record())
    private let interleaving = VirtualThread.current!.interleaving
    private let queue: VirtualThreadQueue
    private let task = Shared<Task<Void, Never>?>(nil)
    private let next: ScriptedOperation
    private let isFailing: Bool

    /// - Parameter isFailing: Whether the closure throws.
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    init(isFailing: Bool) {
        self.isFailing = isFailing
        queue = VirtualThreadQueue(interleaving)
        // The limit that others set is that of its guests.
        queue.childSettings = (1, false)
        next = ScriptedOperation("next")
        interleaving.leaks.track(queue, "the queue")
        interleaving.leaks.track(next, "the next operation")
        task.value = Task(executorPreference: VirtualThreadExecutor(interleaving)) { await self.run() }
    }

    private func run() async {
        let token = interleaving.leaks.token("the closure")
        var outcome = "success"
        do {
            try await queue.run(name: "closure") {
                token.use()
                VirtualThread.place("closure")
                record.change { $0.runs += 1 }
                if isFailing { throw TestError.first }
            }
        } catch {
            outcome = text(error)
        }
        record.change { $0.outcomes.append(outcome) }
    }

    func cancelTask() {
        record.change { $0.isCancelled = true }
        VirtualThread.withRuntimeLock { task.value?.cancel() }
    }

    /// Cancels the operation that holds the place, and what comes after it if that is there.
    func cancelOperations() {
        record.change { $0.isCancelled = true }
        queue.cancelAllOperations()
    }

    /// Adds what comes after the closure, once.
    func addNext() {
        if record.change({ exchange(&$0.hasNext, with: true) }) { return }
        queue.addOperation(next)
    }

    func endAll() {
        if record.value.outcomes.isEmpty { record.change { $0.problems.append("the task goes on waiting") } }
        addNext()
    }

    func problems() -> [String] {
        task.value = nil
        let record = record.value
        var problems = record.problems
        let expected = record.runs == 0 ? "cancelled" : isFailing ? "first" : "success"
        if record.runs > 1 { problems.append("\(record.runs) runs") }
        if record.outcomes != [expected] { problems.append("\(record.outcomes) after \(record.runs) runs") }
        if record.runs == 0, !record.isCancelled { problems.append("it did not run") }
        if !next.isFinished { problems.append("the place was not given back") }
        return problems
    }
}
#endif
