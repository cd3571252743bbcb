#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation whose timeout expires while another thread ends or cancels it.
@Suite("Interleavings of timeouts", .serialized, .takesTurns, .hangGuard) struct TimeoutInterleavingTests {
    @Test(
        "A timeout that expires while an operation ends leaves one outcome, and no deadline",
        arguments: TimeoutSubject.Kind.allCases, TimeoutSubject.Step.allCases
    )
    private func everyStep(kind: TimeoutSubject.Kind, step: TimeoutSubject.Step) async {
        let roles = [
            Role<TimeoutSubject>("start") { $0.operation.start() },
            Role<TimeoutSubject>("expire") { $0.expire() },
            Role<TimeoutSubject>("\(step)") { $0.take(step) },
        ]
        await expectNoProblems(
            "\(kind) with a timeout, \(step)", samples: (150, 75), { _ in TimeoutSubject(kind) }, roles,
            #_sourceLocation)
    }
}

/// A clock on which nothing comes but what the test says.
final class StillClock: Clock {
    let now = ContinuousClock.now
    let minimumResolution = Duration.zero
    private let isOver = Gate()

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws { await isOver.opened() }

    /// Ends what sleeps, which the timer may have left behind where the test has said that its time has come.
    func end() { isOver.open() }
}

private final class TimeoutSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable { case leaf, compound }
    enum Step: CaseIterable { case succeed, fail, cancel, cancelWithError }

    private static let timeout = Duration.seconds(10)

    let operation: AsyncOperation
    private let work: ScriptedOperation
    private let clock = StillClock()
    private let timer: DeadlineTimer
    private let completions = Shared(0)

    init(_ kind: Kind) {
        work = ScriptedOperation(main: { _ in VirtualThread.place("main") }) { work in
            VirtualThread.place("didCancel")
            work.finish(withError: CancellationError())
        }
        operation = kind == .leaf ? work : CompoundOperation(operations: [work])
        VirtualThread.expectRelease(of: operation, "the operation")
        timer = clock.timer
        operation.clock = clock
        operation.timeout = Self.timeout
        operation.asyncCompletionBlock = { [completions] _ in completions.change { $0 += 1 } }
    }

    func expire() {
        _ = timer.sleepEnded(TimerSleep(task: 1, deadline: Self.timeout), at: Self.timeout)
    }

    func take(_ step: Step) {
        switch step {
        case .succeed: work.finish()
        case .fail: work.finish(withError: TestError.first)
        case .cancel: operation.cancel()
        case .cancelWithError: operation.cancel(withError: TestError.reason)
        }
    }

    func endAll() {
        operation.start()
        work.finish()
    }

    func problems() -> [String] {
        var problems: [String] = []
        if !operation.isFinished { problems.append("not finished: \(operation.debugDescription)") }
        if completions.value != 1 { problems.append("completed \(completions.value) times") }
        if timer.armedCount != 0 { problems.append("a deadline is left") }
        clock.end()
        let reason = (operation.error as? CompoundOperationError).flatMap { error -> (any Error)? in
            if case .cancelled(_, _, let reason) = error { reason } else { nil }
        }
        let isTimeout = operation.error is OperationTimeoutError || reason is OperationTimeoutError
        if isTimeout, !operation.isCancelled { problems.append("a timeout without a cancellation") }
        return problems
    }
}
#endif
