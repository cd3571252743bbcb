import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@Suite("Races with cancel", .serialized, .hangGuard) struct CancelRaceTests {
    private static func started() -> RaceSubject {
        let subject = RaceSubject(main: { _ in })
        subject.start()
        return subject
    }

    @Test("An operation that is cancelled and finished on two threads ends once, with one outcome")
    func againstFinish() async {
        await expectNoProblems(
            rounds: 5_000, prepare: { _ in Self.started() },
            [{ @Sendable in $0.cancel() }, { @Sendable in $0.end(.first) }])
    }

    @Test("Of a `finish` in `didCancel()` and one on another thread, one decides the outcome")
    func finishInHookAgainstFinish() async {
        await expectNoProblems(
            rounds: 5_000,
            prepare: { _ in
                let subject = RaceSubject(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
                subject.start()
                return subject
            },
            [{ @Sendable in $0.cancel(withError: TestError.reason) }, { @Sendable in $0.end(nil) }])
    }

    @Test("An operation that is cancelled while another thread starts it ends once") func againstStart() async {
        await expectNoProblems(
            rounds: 5_000,
            prepare: { _ in RaceSubject(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.cancel() }])
    }

    @Test("An operation that is started, cancelled and finished on three threads ends once, with one outcome")
    func againstStartAndFinish() async {
        await expectNoProblems(
            rounds: 5_000, prepare: { _ in RaceSubject(main: { _ in }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.cancel() }, { @Sendable in $0.end(.first) }])
    }

    @Test("An operation that is cancelled while it starts and finishes in `main()` ends once")
    func againstFinishInMain() async {
        await expectNoProblems(
            rounds: 5_000, prepare: { _ in RaceSubject(main: { $0.end(.first) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.cancel() }])
    }

    @Test("An operation that several threads cancel calls `didCancel()` once") func fromManyThreads() async {
        await expectNoProblems(
            rounds: 3_000,
            prepare: { _ in
                let subject = RaceSubject(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
                subject.start()
                return subject
            },
            [
                { @Sendable in $0.cancel() }, { @Sendable in $0.cancel(withError: TestError.reason) },
                { @Sendable in $0.cancel() },
            ])
    }

    @Test("An operation may be cancelled in its own blocks while other threads start, finish and cancel it")
    func inOwnBlocks() async {
        await expectNoProblems(
            rounds: 3_000,
            prepare: { _ in
                let subject = RaceSubject(main: { $0.cancel() }, didCancel: { $0.cancel() })
                subject.completionBlock = { subject.cancel() }
                return subject
            },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(.first) }, { @Sendable in $0.cancel() }])
    }

    @Test("An operation that is cancelled while its queue starts it ends once, and is released")
    func againstQueue() async {
        let wrong = EventLog()
        let tracker = LeakTracker()
        await onThread {
            for round in 0..<2_000 {
                let queue = OperationQueue()
                let subject = tracker.track(
                    RaceSubject(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) }))
                queue.addOperation(subject)
                subject.cancel()
                subject.waitUntilFinished()
                for problem in subject.problems() { wrong.add("round \(round): \(problem)") }
            }
        }
        #expect(wrong.events.isEmpty)
        await tracker.expectAllReleased()
    }

    @Test("The error of a cancellation cannot be read before `isCancelled` is true") func isCancelledFirst() async {
        // Read on this thread, not in the completion: an error that says cancelled is never ahead of the flag.
        struct Subject: Sendable {
            let operation = ScriptedOperation(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) })
        }
        let wrong = EventLog()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 4_000, seed: seed, prepare: { _ in Subject() },
            [
                { @Sendable in $0.operation.start() },
                { @Sendable in $0.operation.cancel() },
                { @Sendable subject in
                    while true {
                        let (isFinished, error) = (subject.operation.isFinished, subject.operation.error)
                        if error != nil, !subject.operation.isCancelled {
                            wrong.add("an error, and isCancelled false")
                            return
                        }
                        if isFinished { return }
                        sched_yield()
                    }
                },
            ],
            check: { _, _ in })
        #expect(wrong.events.isEmpty, "seed \(seed)")
    }
}
