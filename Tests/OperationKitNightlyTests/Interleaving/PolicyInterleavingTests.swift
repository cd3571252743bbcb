#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Operations that wait at a gate, have a timeout or make attempts, whose waits are over while other threads end or cancel
/// them, in many orders of their steps.
@Suite("Interleavings of policies", .serialized, .takesTurns, .hangGuard) struct PolicyInterleavingTests {
    private static let scenes = PolicySubject.Kind.allCases.flatMap { kind in
        kind.steps.map { step in
            Scene("\(kind), \(step)", kind.roles + [Role("\(step)") { $0.take(step) }]) { PolicySubject(kind) }
        }
    }

    @Test(
        "A wait that is over while its operation ends leaves one outcome, no deadline, and no work after the end",
        arguments: scenes)
    private func everyScene(scene: Scene<PolicySubject>) async {
        await scene.expectNoProblems(atMost: 5_000, samples: (150, 75))
    }
}

private final class PolicySubject: ExplorationSubject, @unchecked Sendable {
    enum Step { case cancel, cancelTwice, cancelWithReason, finish, failGate, succeed, fail, endSecond }

    enum Kind: CaseIterable {
        case gate, gateOfCompound, timeout, timeoutOfCompound, hedging, retry, repetition

        var makesAttempts: Bool { self == .hedging || self == .retry || self == .repetition }
        var isOfGate: Bool { self == .gate || self == .gateOfCompound }
        var isOfCompound: Bool { self == .gateOfCompound || self == .timeoutOfCompound }

        var steps: [Step] {
            if isOfGate { return [.cancel, .cancelTwice, .finish, .failGate] }
            return [.cancel, .cancelWithReason] + (makesAttempts ? [.finish, .endSecond] : [.succeed, .fail])
        }

        /// What happens beside the step. Operations that make attempts have started before.
        var roles: [Role<PolicySubject>] {
            let expire = Role<PolicySubject>("expire") { $0.expire() }
            if makesAttempts { return [Role("end") { $0.endWork(0, .first) }, expire] }
            return [Role("start") { $0.operation.start() }, isOfGate ? Role("open") { $0.gate.open() } : expire]
        }
    }

    private struct Record {
        var works: [ScriptedOperation] = []
        /// The attempts that had begun when `cancel()` had returned.
        var begunBeforeCancel: Set<ObjectIdentifier>?
        var hasEnded = false
        var hasWorked = false
        var problems: [String] = []
    }

    let operation: AsyncOperation
    let gate: HeldGate
    private let kind: Kind
    /// On which nothing comes but what the test says.
    private let clock = ManualClock()
    private let timer: DeadlineTimer
    private let gateLog = EventLog()
    private let ending: Ending
    private let record: Shared<Record>
    private static let delay = Duration.seconds(10)

    init(_ kind: Kind) {
        self.kind = kind
        let record = Shared(Record())
        self.record = record
        timer = clock.timer
        gate = HeldGate("gate", gateLog, willWithdraw: { VirtualThread.place("withdraw") })
        let make = { @Sendable (_: Int) -> AsyncOperation in PolicySubject.work(of: kind, record) }
        switch kind {
        case .gate, .timeout: operation = make(1)
        case .gateOfCompound, .timeoutOfCompound: operation = CompoundOperation(operations: [make(1)])
        case .retry:
            let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(Self.delay), jitter: .none)
            operation = RetryOperation(policy, makeOperation: make)
        case .repetition:
            operation = RepeatOperation(
                every: Self.delay, maximumCount: 3, continuesAfterFailure: true, until: { true }, makeOperation: make)
        case .hedging: operation = HedgedOperation(after: Self.delay, maximumAttempts: 3, makeOperation: make)
        }
        ending = Ending(of: operation) { [isAround = kind.makesAttempts || kind.isOfCompound] in
            let isEarly = isAround && record.value.works.contains { $0.isExecuting }
            return isEarly ? ["it ended before its work"] : []
        }
        operation.clock = clock
        if kind.isOfGate { operation.addGate(gate) } else if !kind.makesAttempts { operation.timeout = Self.delay }
        if kind.makesAttempts { operation.start() }
    }

    /// Makes an operation that is at work until something ends it, and after a gate only for a moment.
    private static func work(of kind: Kind, _ record: Shared<Record>) -> ScriptedOperation {
        let work = ScriptedOperation(
            main: { work in
                record.change { record in
                    record.hasWorked = true
                    if record.hasEnded { record.problems.append("main() is called after the end") }
                }
                VirtualThread.place("main")
                // Operations are not asked with the record locked: another virtual thread may have their locks.
                let isSecond = kind != .hedging && record.value.works.contains { $0 !== work && $0.isExecuting }
                record.change { record in
                    if record.begunBeforeCancel?.contains(ObjectIdentifier(work)) == false {
                        record.problems.append("an attempt began after cancel() had returned")
                    }
                    if isSecond { record.problems.append("two attempts at the same time") }
                }
                if kind.isOfGate { work.finish() }
            },
            didCancel: { work in
                VirtualThread.place("didCancel")
                work.finish(withError: CancellationError())
            })
        VirtualThread.expectRelease(of: work, "the work")
        record.change { $0.works.append(work) }
        return work
    }

    func expire() {
        for task in 1...4 {
            _ = timer.sleepEnded(TimerSleep(task: task, deadline: .seconds(100)), at: .seconds(100))
        }
    }

    /// Ends the work, or an attempt, if it has been made.
    func endWork(_ index: Int, _ error: TestError? = nil) {
        record.value.works.dropFirst(index).first?.finish(withError: error)
    }

    func take(_ step: Step) {
        switch step {
        case .cancel, .cancelTwice:
            operation.cancel()
            if step == .cancelTwice { operation.cancel() }
            let begun = record.value.works.filter { $0.isExecuting || $0.isFinished }.map { ObjectIdentifier($0) }
            if kind.makesAttempts { record.change { $0.begunBeforeCancel = Set(begun) } }
        case .cancelWithReason: operation.cancel(withError: TestError.reason)
        case .finish: operation.finish(withError: TestError.second)
        case .failGate: gate.open(withError: TestError.first)
        case .succeed: endWork(0)
        case .fail: endWork(0, .first)
        case .endSecond: endWork(1)
        }
        // From here on the work does not start any more, unless it did before.
        let hasEnded = VirtualThread.inOneStep { operation.isFinished }
        record.change { if hasEnded { $0.hasEnded = true } }
    }

    func endHeld() {
        if !kind.makesAttempts { return }
        for work in record.value.works { work.finish() }
        expire()
    }

    func endAll() {
        operation.start()
        gate.open()
        for work in record.value.works { work.finish() }
    }

    func problems() -> [String] {
        // They hold the record.
        let works = record.change { exchange(&$0.works, with: []) }
        let record = record.value
        var problems = record.problems + ending.problems()
        if timer.state.withLock({ $0.machine.deadlines.count }) != 0 { problems.append("a deadline is left") }
        // What sleeps may have been left behind, where the test has said that its time has come.
        clock.advance(by: .seconds(1_000))
        if works.count > 3 { problems.append("\(works.count) attempts") }
        if gateLog.count(of: "withdraw gate") > 1 { problems.append("withdrawn twice") }
        if kind.isOfGate, operation.error == nil, !record.hasWorked { problems.append("success without main()") }
        let isTimeout = [operation.error, operation.cancellationReason].contains { $0 is OperationTimeoutError }
        if isTimeout, !operation.isCancelled { problems.append("a timeout without a cancellation") }
        return problems
    }
}
#endif
