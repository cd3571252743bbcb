import OperationKitTestSupport

/// Whatever two or three threads do to an operation, it ends once, with one outcome. Interleavings try every order of such
/// steps, up to a bound; these are on real threads, and under the Thread Sanitizer.
@Suite("Races of a life", .serialized, .hangGuard) struct LifeRaceTests {
    enum Meeting: String, CaseIterable, CustomTestStringConvertible {
        case cancelFinish = "a cancellation and a finish"
        case cancelFinishInHook = "a finish in `didCancel()` and one on another thread"
        case startCancel = "a start and a cancellation"
        case startCancelFinish = "a start, a cancellation and a finish"
        case startCancelFinishInMain = "a start, and a cancellation while `main()` finishes"
        case cancels = "three cancellations"
        case cancelsInBlocks = "cancellations in the operation's own blocks, and all else on other threads"
        case finishes = "four finishes"
        case startFinish = "a start and a finish"
        case startFinishInMain = "a start, and a finish while `main()` finishes"
        case startsFinish = "two starts and a finish"
        case starts = "two starts"
        case finishWait = "a finish and `waitUntilFinished()`"
        case startWait = "a start and `waitUntilFinished()`"

        var testDescription: String { rawValue }

        private static let idle: @Sendable (RaceSubject) -> Void = { _ in }
        private static let start: @Sendable (RaceSubject) -> Void = { $0.start() }
        private static let cancel: @Sendable (RaceSubject) -> Void = { $0.cancel() }
        private static let cancelWithReason: @Sendable (RaceSubject) -> Void = {
            $0.cancel(withError: TestError.reason)
        }
        private static let end: @Sendable (RaceSubject) -> Void = { $0.end(.first) }
        private static let succeed: @Sendable (RaceSubject) -> Void = { $0.end(nil) }
        private static let stop: @Sendable (RaceSubject) -> Void = { $0.finish(withError: CancellationError()) }
        private static let wait: @Sendable (RaceSubject) -> Void = { subject in
            subject.waitUntilFinished()
            if !subject.isFinished { subject.record.change { $0.violations.append("waited, and not finished") } }
        }

        var subject: RaceSubject {
            switch self {
            case .cancelFinish, .startCancelFinish, .finishes, .startFinish, .startsFinish, .finishWait:
                RaceSubject(main: Self.idle)
            case .cancelFinishInHook, .startCancel, .cancels: RaceSubject(main: Self.idle, didCancel: Self.stop)
            case .startCancelFinishInMain: RaceSubject(main: Self.end)
            case .startFinishInMain: RaceSubject(main: { $0.end(.second) })
            case .starts, .startWait: RaceSubject(main: Self.succeed)
            case .cancelsInBlocks: RaceSubject(main: Self.cancel, didCancel: Self.cancel)
            }
        }

        var isStarted: Bool { [.cancelFinish, .cancelFinishInHook, .cancels, .finishes, .finishWait].contains(self) }

        var bodies: [@Sendable (RaceSubject) -> Void] {
            switch self {
            case .cancelFinish: [Self.cancel, Self.end]
            case .cancelFinishInHook: [Self.cancelWithReason, Self.succeed]
            case .startCancel, .startCancelFinishInMain: [Self.start, Self.cancel]
            case .startCancelFinish, .cancelsInBlocks: [Self.start, Self.cancel, Self.end]
            case .cancels: [Self.cancel, Self.cancelWithReason, Self.cancel]
            case .finishes: (0..<4).map { number in { $0.end(.numbered(number)) } }
            case .startFinish, .startFinishInMain: [Self.start, Self.end]
            case .startsFinish: [Self.start, Self.succeed, Self.start]
            case .starts: [Self.start, Self.start]
            case .finishWait: [Self.end, Self.wait]
            case .startWait: [Self.start, Self.wait]
            }
        }
    }

    @Test("An operation ends once, with one outcome, and is released", arguments: Meeting.allCases)
    func endsOnce(_ meeting: Meeting) async {
        await expectNoProblems(
            rounds: 3_000,
            prepare: { _ in
                let subject = meeting.subject
                if meeting == .cancelsInBlocks { subject.completionBlock = { subject.cancel() } }
                if meeting.isStarted { subject.start() }
                return subject
            }, meeting.bodies)
    }

    /// What a third thread must never see while one starts an operation and another one ends it.
    private func expectNeverSeen(
        _ problem: String, end: @escaping @Sendable (ScriptedOperation) -> Void,
        _ isSeen: @escaping @Sendable (_ operation: ScriptedOperation, _ hasExecuted: Bool) -> Bool
    ) async {
        let seen = Shared(0)
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 3_000, seed: seed,
            prepare: { _ in ScriptedOperation.stoppable() },
            [
                { $0.start() }, end,
                { operation in
                    var (isFinished, hasExecuted) = (false, false)
                    while !isFinished {
                        isFinished = operation.isFinished
                        if isSeen(operation, hasExecuted) { seen.change { $0 += 1 } }
                        if operation.isExecuting { hasExecuted = true }
                        sched_yield()
                    }
                },
            ],
            check: { _, _ in })
        #expect(seen.value == 0, "\(problem), seed \(seed)")
    }

    @Test("The error of a cancellation cannot be read before `isCancelled` is true") func isCancelledFirst() async {
        await expectNeverSeen("an error, and isCancelled false", end: { $0.cancel() }) { operation, _ in
            operation.error != nil && !operation.isCancelled
        }
    }

    @Test("No thread sees an operation between executing and finished") func nothingBetween() async {
        await expectNeverSeen("neither executing nor finished, or both", end: { $0.finish() }) { operation, hasBegun in
            let isExecuting = operation.isExecuting
            let isFinished = operation.isFinished
            return hasBegun && !isExecuting && !isFinished || isFinished && operation.isExecuting
        }
    }

    @Test("Of an `asyncCompletionBlock` and its replacement during `finish`, exactly one is called, and none kept")
    func replacedDuringFinish() async {
        struct Subject: Sendable {
            let operation = ScriptedOperation.idle()
            let calls = EventLog()
        }
        let wrong = EventLog()
        let tracker = LeakTracker()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 3_000, seed: seed,
            prepare: { _ -> Subject in
                let subject = Subject()
                subject.operation.asyncCompletionBlock = { [calls = subject.calls] _ in calls.add("first") }
                subject.operation.start()
                return subject
            },
            [
                { $0.operation.finish() },
                { subject in
                    let token = tracker.token("block")
                    subject.operation.asyncCompletionBlock = { [calls = subject.calls] _ in
                        token.use()
                        calls.add("second")
                    }
                },
            ],
            check: { subject, round in
                let calls = subject.calls.events
                if calls != ["first"], calls != ["second"] { wrong.add("round \(round): \(calls)") }
                if subject.operation.asyncCompletionBlock != nil { wrong.add("round \(round): kept") }
            })
        #expect(wrong.events.isEmpty, "seed \(seed)")
        await tracker.expectAllReleased()
    }
}
