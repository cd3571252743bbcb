import OperationKitTestSupport

/// Whatever threads do to an operation, it ends once, with one outcome. Interleavings try every order of two such steps, up to
/// a bound; these are on real threads, and under the Thread Sanitizer.
@Suite("Races of a life", .serialized, .hangGuard) struct LifeRaceTests {
    private typealias Step = @Sendable (RaceSubject) -> Void

    private struct Meeting: Sendable {
        let subject: RaceSubject
        let steps: [Step]
    }

    /// What the work, the hook and other threads may do.
    private static let inside: [Step] = [
        { _ in }, { $0.cancel() }, { $0.end(.second) }, { $0.end(nil) }, { $0.finish(withError: CancellationError()) },
    ]
    private static let outside: [Step] = [
        { $0.start() }, { $0.cancel() }, { $0.cancel(withError: TestError.reason) }, { $0.end(.first) },
        { $0.end(nil) },
    ]

    @Test("An operation ends once, with one outcome, and is released, whatever three threads and its own work do to it")
    func endsOnce() async {
        let seed = SplitMix64.freshSeed()
        let (random, problems, tracker) = (Shared(SplitMix64(seed: seed)), EventLog(), LeakTracker())
        let choose: @Sendable ([Step]) -> Step = { steps in
            random.change { random in steps[Int(random.next() % UInt64(steps.count))] }
        }
        await race(
            rounds: 40_000, seed: seed,
            prepare: { round in
                // Work that ends as cancelled, and was not, would be an outcome that no call has decided.
                let subject = RaceSubject(main: choose(Self.inside.dropLast()), didCancel: choose(Self.inside))
                tracker.track(subject, "round \(round)")
                if round % 2 == 0 { subject.start() }
                if round % 8 == 0 { subject.completionBlock = { subject.cancel() } }
                return Meeting(subject: subject, steps: (0..<3).map { _ in choose(Self.outside) })
            },
            (0..<3).map { lane in
                { meeting in
                    let subject = meeting.subject
                    meeting.steps[lane](subject)
                    if lane == 0 { subject.start() }
                    if lane == 1 { subject.end(.numbered(1)) }
                    subject.waitUntilFinished()
                    if !subject.isFinished { problems.add("waited, and not finished") }
                }
            },
            check: { meeting, round in
                for problem in meeting.subject.problems() { problems.add("round \(round): \(problem)") }
            })
        #expect(problems.events.isEmpty, "seed \(seed)")
        await tracker.expectAllReleased()
    }

    @Test(
        "No thread sees an operation between executing and finished, nor the error of a cancellation before `isCancelled`",
        arguments: [false, true])
    func readers(isCancelled: Bool) async {
        let seed = SplitMix64.freshSeed()
        let seen = EventLog()
        await race(
            rounds: 3_000, seed: seed,
            prepare: { _ in ScriptedOperation.stoppable() },
            [
                { $0.start() },
                { if isCancelled { $0.cancel() } else { $0.finish() } },
                { operation in
                    var (isFinished, hasExecuted) = (false, false)
                    while !isFinished {
                        isFinished = operation.isFinished
                        if operation.error != nil, !operation.isCancelled {
                            seen.add("an error, and isCancelled false")
                        }
                        let (executes, ended) = (operation.isExecuting, operation.isFinished)
                        if hasExecuted, !executes, !ended { seen.add("neither executing nor finished") }
                        if ended, operation.isExecuting { seen.add("executing and finished") }
                        if executes { hasExecuted = true }
                        sched_yield()
                    }
                },
            ], check: { _, _ in })
        #expect(seen.events.isEmpty, "seed \(seed)")
    }
}
