import Foundation
import OperationKit
import Testing

/// What a race is about: an operation that counts everything that happens to it, and knows what must never happen.
final class RaceSubject: ScriptedOperation, @unchecked Sendable {
    struct Record {
        var mains = 0
        var hooks = 0
        var isInMain = false
        var completions: [String] = []
        var accepted: [String] = []
        var violations: [String] = []
    }

    let record = Shared(Record())

    init(
        main: @escaping @Sendable (RaceSubject) -> Void, didCancel: @escaping @Sendable (RaceSubject) -> Void = { _ in }
    ) {
        super.init(
            main: {
                guard let self = $0 as? RaceSubject else { return }
                self.record.change {
                    $0.mains += 1
                    $0.isInMain = true
                }
                main(self)
                self.record.change { $0.isInMain = false }
            },
            didCancel: {
                guard let self = $0 as? RaceSubject else { return }
                let isCancelled = self.isCancelled
                self.record.change {
                    $0.hooks += 1
                    if $0.isInMain { $0.violations.append("the hook ran during main()") }
                    if $0.mains == 0 { $0.violations.append("the hook ran without main()") }
                    if !isCancelled { $0.violations.append("the hook ran, and isCancelled was false") }
                }
                didCancel(self)
            })
        asyncCompletionBlock = { [unowned self] in completed($0) }
    }

    private func completed(_ outcome: (any Error)?) {
        let (isCancelled, isFinished, readable) = (isCancelled, isFinished, text(error))
        record.change {
            $0.completions.append(text(outcome))
            if isFinished { $0.violations.append("completed after isFinished") }
            if readable != text(outcome) { $0.violations.append("\(text(outcome)) was delivered, \(readable) read") }
            if ["cancelled", "reason"].contains(text(outcome)), !isCancelled {
                $0.violations.append("the outcome says cancelled, and isCancelled was false")
            }
        }
    }

    /// Finishes, and notes whether that was accepted.
    func end(_ error: TestError?) {
        if finish(withError: error) { record.change { $0.accepted.append(text(error)) } }
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        let record = record.value
        var problems = record.violations
        if !isFinished || isExecuting { problems.append("not finished, \(isExecuting)") }
        if record.completions.count != 1 { problems.append("completions: \(record.completions)") }
        if record.accepted.count > 1 { problems.append("accepted: \(record.accepted)") }
        if let winner = record.accepted.first, record.completions != [winner] {
            problems.append("\(winner) won, \(record.completions) came")
        }
        if record.accepted.isEmpty, !isCancelled { problems.append("nobody decided: \(record.completions)") }
        if record.completions.first != text(error) { problems.append("error reads \(text(error))") }
        if record.mains > 1 || record.hooks > 1 { problems.append("mains \(record.mains), hooks \(record.hooks)") }
        if record.hooks > 0, !isCancelled { problems.append("a hook, and not cancelled") }
        return problems
    }
}

/// Lets bodies race on a fresh subject, again and again, and expects that nothing is wrong with any of them.
func expectNoProblems(
    rounds: Int, _ location: SourceLocation = #_sourceLocation,
    prepare: @escaping @Sendable (Int) -> RaceSubject, _ bodies: [@Sendable (RaceSubject) -> Void]
) async {
    let seed = SplitMix64.freshSeed()
    let problems = Shared<[String]>([])
    let tracker = LeakTracker()
    await race(
        rounds: rounds, seed: seed, prepare: { round in tracker.track(prepare(round), "round \(round)") }, bodies,
        check: { subject, round in
            let found = subject.problems().map { "round \(round): \($0)" }
            problems.change { $0 += found }
        })
    #expect(problems.value.isEmpty, "seed \(seed)", sourceLocation: location)
    await tracker.expectAllReleased(location)
}

@Suite("Races with finish", .serialized, .mayNotHang) struct FinishRaceTests {
    @Test func finishAgainstFinish() async {
        await expectNoProblems(
            rounds: 4_000,
            prepare: { _ in
                let subject = RaceSubject(main: { _ in })
                subject.start()
                return subject
            },
            (0..<4).map { number in { @Sendable in $0.end(.numbered(number)) } })
    }

    @Test func finishAgainstStart() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { _ in }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(.first) }])
    }

    @Test func finishInMainAgainstFinish() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(.second) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(.first) }])
    }

    @Test func finishAgainstTwoStarts() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { _ in }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.end(nil) }, { @Sendable in $0.start() }])
    }

    @Test func twoStarts() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(nil) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.start() }])
    }

    @Test func finishAgainstWaitUntilFinished() async {
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

    @Test func startAgainstWaitUntilFinished() async {
        await expectNoProblems(
            rounds: 4_000, prepare: { _ in RaceSubject(main: { $0.end(nil) }) },
            [{ @Sendable in $0.start() }, { @Sendable in $0.waitUntilFinished() }])
    }

    @Test func finishAgainstSettingAsyncCompletionBlock() async {
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
