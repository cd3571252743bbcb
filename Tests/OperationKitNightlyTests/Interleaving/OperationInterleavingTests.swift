#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation, and two or three threads that do something to it, in many orders of their steps. In the long extent of a
/// test run these are all orders of two short steps, and a bounded number of the others; in the short one a sample.
@Suite("Interleavings of single operations", .serialized, .takesTurns, .hangGuard) struct OperationInterleavingTests {
    private static func scene(_ steps: [OperationStep], _ beginning: StepSubject.Beginning) -> Scene<StepSubject> {
        Scene("\(steps), \(beginning)", steps.map { step in Role(step.rawValue) { step($0) } }) {
            StepSubject(beginning)
        }
    }

    @Test(
        "An operation on which two threads act at the same time ends once, wakes those that wait, and calls nothing under a lock",
        arguments: StepSubject.Beginning.allCases)
    private func everyPair(beginning: StepSubject.Beginning) async {
        for (index, first) in OperationStep.allCases.enumerated() {
            for second in OperationStep.allCases[index...] {
                let isShort =
                    second != .awaitAndGiveUp && (beginning != .mainFinishes || first != .start || !second.isLong)
                let inRegions: [(Choices.Extent, Interleaving.Grain)] =
                    first.isLong && second.isLong ? [] : [(isShort ? .everything : .preemptions(3), .regions)]
                await Self.scene([first, second], beginning).expectNoProblems(
                    in: inRegions + [(.preemptions(2), .everyPlace)])
            }
        }
    }

    @Test(
        "In many orders of three steps an operation ends once and wakes those that wait for it",
        arguments: StepSubject.Beginning.allCases)
    private func everyThree(beginning: StepSubject.Beginning) async {
        let steps = OperationStep.allCases.dropLast()
        let all = steps.indices.flatMap { first in
            steps[first...].indices.flatMap { second in steps[second...].map { [steps[first], steps[second], $0] } }
        }
        let few = all.filter { $0.count(where: \.isLong) < 2 }.shuffled().prefix(TestExtent.choose(30, long: .max))
        for three in few {
            let seed = Choices.seed()
            await Self.scene(three, beginning).expectNoProblems(
                in: [(.preemptions(1), .regions), (.samples(20, seed: seed), .everyPlace)], seed: seed)
        }
    }
}

/// What may be done to an operation.
private enum OperationStep: String, CaseIterable {
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
            let task = Task(executorPreference: VirtualThreadExecutor(subject.interleaving)) {
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
private final class StepSubject: ExplorationSubject, @unchecked Sendable {
    enum Beginning: CaseIterable { case pending, executing, mainFinishes }

    let operation: RaceSubject
    let interleaving = VirtualThread.current!.interleaving
    let waits = Shared((begun: 0, ended: 0))

    /// Creates an operation. Others come in before and after its work.
    init(_ beginning: Beginning) {
        operation = RaceSubject(
            main: {
                VirtualThread.place("main")
                if beginning == .mainFinishes { $0.end(.second) }
                VirtualThread.place("main ends")
            }, didCancel: { _ in VirtualThread.place("hook") })
        VirtualThread.expectRelease(of: operation, "the operation")
        let block = operation.asyncCompletionBlock
        operation.asyncCompletionBlock = { error in
            VirtualThread.place("completion")
            VirtualThread.inOneStep { block?(error) }
        }
        if beginning == .executing { operation.start() }
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

    /// Whatever is left open is ended, so that no task waits in vain.
    func endAll() {
        operation.start()
        operation.end(nil)
    }

    func problems() -> [String] {
        let waits = waits.value
        return operation.problems() + (waits.begun == waits.ended ? [] : ["waits: \(waits)"]) + announcementProblems()
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
        let sequences = Dictionary(grouping: announcements, by: \.thread).values.map { $0.map(\.text) }
        if sequences == [begins + ends] || Set(sequences) == [begins, ends] && sequences.count == 2 { return [] }
        return ["announced: \(announcements.map { "\($0.thread) \($0.text)" })"]
    }
}
#endif
