#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Operations that make others while they run, whose delays expire while other threads end an attempt, or cancel them.
@Suite("Interleavings of attempts", .serialized, .takesTurns, .hangGuard) struct AttemptInterleavingTests {
    @Test(
        "A delay that expires while an attempt ends or all is cancelled leaves one outcome, and no deadline",
        arguments: AttemptSubject.Kind.allCases, AttemptSubject.Step.allCases
    )
    private func everyStep(kind: AttemptSubject.Kind, step: AttemptSubject.Step) async {
        let roles = [
            Role<AttemptSubject>("end") { $0.endFirst() },
            Role<AttemptSubject>("expire") { $0.expire() },
            Role<AttemptSubject>("\(step)") { $0.take(step) },
        ]
        await expectNoProblems(
            "\(kind), \(step)", atMost: 5_000, samples: (150, 75),
            { _ in
                let subject = AttemptSubject(kind)
                subject.operation.start()
                return subject
            }, roles, #_sourceLocation)
    }
}

private final class AttemptSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable { case hedged, retry, repetition }
    enum Step: CaseIterable { case cancel, endSecond }

    private struct Record {
        var attempts: [ScriptedOperation] = []
        var completions = 0
        /// The attempts that had begun when `cancel()` had returned.
        var begunBeforeCancel: Set<ObjectIdentifier>?
        var problems: [String] = []
    }

    let operation: AsyncOperation
    private let kind: Kind
    private let clock = StillClock()
    private let timer: DeadlineTimer
    private let record: Shared<Record>

    init(_ kind: Kind) {
        self.kind = kind
        let record = Shared(Record())
        self.record = record
        let make = { @Sendable (_: Int) -> AsyncOperation in AttemptSubject.attempt(of: kind, record) }
        switch kind {
        case .retry:
            let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(10)), jitter: .none)
            operation = RetryOperation(policy, makeOperation: make)
        case .repetition:
            operation = RepeatOperation(
                every: .seconds(10), maximumCount: 3, continuesAfterFailure: true, until: { true }, makeOperation: make)
        case .hedged:
            operation = HedgedOperation(after: .seconds(10), maximumAttempts: 3, makeOperation: make)
        }
        VirtualThread.expectRelease(of: operation, "the operation")
        timer = clock.timer
        operation.clock = clock
        operation.asyncCompletionBlock = { _ in
            let isEarly = record.value.attempts.contains { $0.isExecuting }
            record.change { record in
                record.completions += 1
                if isEarly { record.problems.append("it ended before an attempt") }
            }
        }
    }

    /// Makes an attempt that is at work until something ends it.
    private static func attempt(of kind: Kind, _ record: Shared<Record>) -> ScriptedOperation {
        let attempt = ScriptedOperation(
            main: { attempt in
                VirtualThread.place("main")
                // Operations are not asked with the record locked: another virtual thread may have their locks.
                let isSecond = kind != .hedged && record.value.attempts.contains { $0 !== attempt && $0.isExecuting }
                record.change { record in
                    if record.begunBeforeCancel?.contains(ObjectIdentifier(attempt)) == false {
                        record.problems.append("an attempt began after cancel() had returned")
                    }
                    if isSecond { record.problems.append("two attempts at the same time") }
                }
            },
            didCancel: { attempt in
                VirtualThread.place("didCancel")
                attempt.finish(withError: CancellationError())
            })
        VirtualThread.expectRelease(of: attempt, "an attempt")
        record.change { $0.attempts.append(attempt) }
        return attempt
    }

    /// Fails the first attempt, if it has been made.
    func endFirst() { record.value.attempts.first?.finish(withError: TestError.first) }

    func expire() {
        for task in 1...4 {
            _ = timer.sleepEnded(TimerSleep(task: task, deadline: .seconds(100)), at: .seconds(100))
        }
    }

    func take(_ step: Step) {
        switch step {
        case .cancel:
            operation.cancel()
            let begun = record.value.attempts.filter { $0.isExecuting || $0.isFinished }.map { ObjectIdentifier($0) }
            record.change { $0.begunBeforeCancel = Set(begun) }
        case .endSecond: record.value.attempts.dropFirst().first?.finish()
        }
    }

    func endHeld() {
        for attempt in record.value.attempts { attempt.finish() }
        expire()
    }

    func endAll() {
        for attempt in record.value.attempts { attempt.finish() }
    }

    func problems() -> [String] {
        var problems = record.value.problems
        if !operation.isFinished { problems.append("not finished: \(operation.debugDescription)") }
        if record.value.completions != 1 { problems.append("completed \(record.value.completions) times") }
        if timer.armedCount != 0 { problems.append("a deadline is left") }
        clock.end()
        // They hold the record.
        let attempts = record.change { exchange(&$0.attempts, with: []) }
        if attempts.count > 3 { problems.append("\(attempts.count) attempts") }
        return problems
    }
}
#endif
