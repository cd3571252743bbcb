#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// What may be done to an operation.
enum OperationStep: String, CaseIterable, Sendable {
    case start, succeed, fail, cancel, cancelWithReason, wait, await, awaitAndGiveUp

    /// Whether it has so many steps that two of its kind cannot be tried in every order.
    var isLong: Bool { self == .await || self == .awaitAndGiveUp }

    func callAsFunction(_ subject: StepSubject) {
        let operation = subject.operation
        switch self {
        case .start: operation.start()
        case .succeed: operation.end(nil)
        case .fail: operation.end(.first)
        case .cancel: operation.cancel()
        case .cancelWithReason: operation.cancel(withError: TestError.reason)
        case .wait:
            VirtualThread.outside { operation.waitUntilFinished() }
            if !VirtualThread.inOneStep({ operation.isFinished }) { subject.found("waited, and it is not finished") }
        case .await, .awaitAndGiveUp:
            guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
            subject.waits.change { $0.begun += 1 }
            let executor = VirtualThreadExecutor(subject.interleaving)
            let task = Task(executorPreference: executor) {
                do throws(any Error) {
                    try await operation.finished()
                    subject.woke(with: nil, mayGiveUp: self == .awaitAndGiveUp)
                } catch {
                    subject.woke(with: error, mayGiveUp: self == .awaitAndGiveUp)
                }
            }
            guard self == .awaitAndGiveUp else { return }
            VirtualThread.place("before giving up")
            task.cancel()
        }
    }
}

/// An operation in a run, and what becomes of those who wait for it.
final class StepSubject: @unchecked Sendable {
    let operation: RaceSubject
    let interleaving: Interleaving
    let waits = Shared((begun: 0, ended: 0))

    /// Creates an operation from its work. Others come in before and after the work.
    init(_ interleaving: Interleaving, main: @escaping @Sendable (RaceSubject) -> Void) {
        self.interleaving = interleaving
        operation = RaceSubject(
            main: {
                VirtualThread.place("main")
                main($0)
                VirtualThread.place("main ends")
            },
            didCancel: { _ in
                VirtualThread.place("hook")
            })
        VirtualThread.expectRelease(of: operation, "the operation")
        let block = operation.asyncCompletionBlock
        operation.asyncCompletionBlock = { error in
            VirtualThread.place("completion")
            VirtualThread.inOneStep { block?(error) }
        }
    }

    func found(_ problem: String) {
        operation.record.change { $0.violations.append(problem) }
    }

    func woke(with error: (any Error)?, mayGiveUp: Bool) {
        waits.change { $0.ended += 1 }
        let (isFinished, outcome) = VirtualThread.inOneStep { (operation.isFinished, operation.error) }
        if mayGiveUp, error is CancellationError { return }
        if !isFinished { found("a waiter resumed before the end") }
        if text(error) != text(outcome) { found("a waiter got \(text(error))") }
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        var problems = operation.problems()
        if waits.value.begun != waits.value.ended { problems.append("waits: \(waits.value)") }
        return problems + announcementProblems()
    }

    /// Each virtual thread announces a change before and after it, in this order; each change is announced once.
    private func announcementProblems() -> [String] {
        let announcements = interleaving.announcements.filter { $0.operation == ObjectIdentifier(operation) }
        let hasRun = operation.record.value.mains > 0 || announcements.contains { $0.text == "will isExecuting" }
        #if canImport(ObjectiveC)
        let ends =
            hasRun
            ? ["will isExecuting", "will isFinished", "did isExecuting", "did isFinished"]
            : ["will isFinished", "did isFinished"]
        #else
        let ends = ["will isFinished", "did isFinished"]
        #endif
        let begins = hasRun ? ["will isExecuting", "did isExecuting"] : []
        var sequences: [[String]] = []
        for thread in Set(announcements.map(\.thread)) {
            sequences.append(announcements.filter { $0.thread == thread }.map(\.text))
        }
        let isRight =
            sequences.count == 1
            ? sequences[0] == begins + ends : Set(sequences) == Set([begins, ends]) && sequences.count == 2
        return isRight ? [] : ["announced: \(announcements.map { "\($0.thread) \($0.text)" })"]
    }
}
#endif
