import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@Suite("Races with finish", .serialized, .hangGuard) struct FinishRaceTests {
    @Test("Of several threads that finish an operation, one decides the outcome") func againstFinish() async {
        await expectNoProblems(
            rounds: 4_000,
            prepare: { _ in
                let subject = RaceSubject(main: { _ in })
                subject.start()
                return subject
            },
            (0..<4).map { number in { @Sendable in $0.end(.numbered(number)) } })
    }

    @Test("An operation that is finished while another thread starts it ends once, with that outcome")
    func againstStart() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { _ in }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(.first) }])
    }

    @Test("Of a `finish` in `main()` and one on another thread, one decides the outcome")
    func inMainAgainstFinish() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(.second) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(.first) }])
    }

    @Test("An operation that is finished while two threads start it ends once, with that outcome")
    func againstTwoStarts() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { _ in }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(nil) }, { @Sendable in $0.start() }])
    }

    @Test("An operation that two threads start calls `main()` once") func twoStarts() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(nil) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.start() }])
    }

    @Test("`waitUntilFinished()` returns when the operation has been finished by another thread")
    func againstWaiting() async {
        await expectNoProblems(
            rounds: 10_000,
            prepare: { _ in
                let subject = RaceSubject(main: { _ in })
                subject.start()
                return subject
            },
            [
                { @Sendable in $0.end(.first) },
                { @Sendable subject in
                    subject.waitUntilFinished()
                    let isFinished = subject.isFinished
                    if !isFinished { subject.record.change { $0.violations.append("waited, and not finished") } }
                },
            ])
    }

    @Test("`waitUntilFinished()` returns when the operation is started, and finishes, on another thread")
    func startAgainstWaiting() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(nil) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.waitUntilFinished() }])
    }

    @Test("Of an `asyncCompletionBlock` and its replacement during `finish`, exactly one is called, and none kept")
    func replacedDuringFinish() async {
        struct Subject: Sendable {
            let operation = ScriptedOperation.idle()
            let calls = Shared<[String]>([])
        }
        let wrong = EventLog()
        let tracker = LeakTracker()
        let seed = SplitMix64.freshSeed()
        await race(
            rounds: 4_000, seed: seed,
            prepare: { _ -> Subject in
                let subject = Subject()
                let calls = subject.calls
                subject.operation.asyncCompletionBlock = { _ in calls.change { $0.append("first") } }
                subject.operation.start()
                return subject
            },
            [
                { @Sendable in $0.operation.finish() },
                { @Sendable (subject: Subject) in
                    let token = tracker.token("block")
                    subject.operation.asyncCompletionBlock = { [calls = subject.calls] _ in
                        token.use()
                        calls.change { $0.append("second") }
                    }
                },
            ],
            check: { subject, round in
                let calls = subject.calls.value
                if calls != ["first"], calls != ["second"] { wrong.add("round \(round): \(calls)") }
                if subject.operation.asyncCompletionBlock != nil { wrong.add("round \(round): kept") }
            })
        #expect(wrong.events.isEmpty, "seed \(seed)")
        await tracker.expectAllReleased()
    }
}
