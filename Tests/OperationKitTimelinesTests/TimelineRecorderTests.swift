import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Recording timelines", .hangGuard) struct TimelineRecorderTests {
    private typealias Entry = OperationTimeline.Entry

    private let recorder = OperationTimelineRecorder()

    private func entry(_ operation: AsyncOperation) throws -> Entry {
        try #require(recorder.timeline[operation.observationID])
    }

    /// Runs an operation that is recorded, until its end is, of which another thread may be telling the recorder.
    private func run(_ operation: AsyncOperation) async {
        operation.addObserver(recorder)
        try? await OperationQueue().run(operation)
        await eventually("the end is not recorded") { recorder.timeline[operation.observationID]?.outcome != nil }
    }

    @Test("A composite is recorded with its children, their dependencies, times and ends") func composite() async throws
    {
        let first = ScriptedOperation("first")
        let second = ScriptedOperation("second") { $0.finish(withError: TestError.first) }
        second.addDependency(first)
        let compound = CompoundOperation(name: "all", maxConcurrentOperationCount: 2)
        compound.addObserver(recorder)
        try compound.addOperations([first, second])
        try? await OperationQueue().run(compound)
        let timeline = recorder.timeline
        let all = try entry(compound)
        let (one, two) = (try entry(first), try entry(second))
        #expect(timeline.entries.count == 3 && timeline.droppedCount == 0)
        #expect(all.isComposite && all.limit == 2 && all.parent == nil && all.typeName == "CompoundOperation")
        #expect([one, two].allSatisfy { $0.parent == all.id && !$0.isComposite && $0.typeName == "ScriptedOperation" })
        #expect((one.name, one.outcome, one.dependencies) == ("first", .success, []))
        #expect((two.name, two.outcome, two.dependencies) == ("second", .failed("first"), [one.id]))
        if case .failed = all.outcome {} else { Issue.record("\(String(describing: all.outcome))") }
        let times = [
            one.added, two.added, all.started, all.running, one.started, one.running, one.finished, two.started,
            two.running, two.finished, all.finished,
        ].map { $0 ?? .longest }
        #expect(times == times.sorted() && times[0] == .zero && timeline.duration == times.last)
        // Rounded to a millisecond.
        let age = timeline.startDate.map { -$0.timeIntervalSinceNow } ?? -1
        #expect(age > -0.001 && age < hangTimeout)
        // Between the two, all that matters is on the path.
        #expect(timeline.criticalPath.map(\.operation).filter { $0 != all.id } == [one.id, two.id])
    }

    @Test("What an operation waited for is recorded, and what it held, which no permit is") func waits() async throws {
        let (database, api) = (ExclusiveAccess("database"), RateLimit("api", 2, per: .seconds(1)))
        let holder = ScriptedOperation.idle("holder")
        let waiting = ScriptedOperation("waiting")
        for operation in [holder, waiting] {
            operation.require(database)
            operation.require(api)
            operation.addObserver(recorder)
        }
        holder.start()
        waiting.start()
        let open = try entry(waiting)
        #expect(open.waits.count == 1 && open.waits[0].to == nil && open.running == nil && open.outcome == nil)
        holder.finish()
        try await waiting.finished()
        let (first, second) = (try entry(holder), try entry(waiting))
        #expect(first.waits == [] && first.resources == ["database"] && second.resources == ["database"])
        #expect(second.waits.count == 1 && second.waits[0].reason.contains("database"))
        #expect(second.waits[0].to == second.running && second.waits[0].from >= second.started ?? .longest)
        let path = recorder.timeline.criticalPath
        #expect(
            path.map(\.operation) == [first.id, second.id] && path[1].reason == .resource("database", from: first.id))
    }

    @Test("Waits for a resource are counted together, whatever holds it, also those of attempts, and are no work")
    func waitsForOneResource() async throws {
        let database = ExclusiveAccess("database")
        let holder = ScriptedOperation.idle("holder")
        let next = ScriptedOperation.idle("next")
        let last = TaskOperation(name: "last", retry: RetryPolicy(maximumAttempts: 2)) {}
        for operation in [holder, next, last] {
            operation.require(database)
            operation.addObserver(recorder)
            operation.start()
        }
        await eventually("“last” does not wait") {
            recorder.timeline[last.observationID]?.waits.count == 1
        }
        holder.finish()
        await eventually("“next” does not work") { recorder.timeline[next.observationID]?.running != nil }
        next.finish()
        try await last.finished()
        let timeline = recorder.timeline
        #expect(timeline.summary.waiting.map(\.reason) == ["for exclusive access to “database”"])
        #expect(timeline.summary.waiting.first?.count == 2)
        let entry = try entry(last)
        #expect(entry.segments(end: timeline.duration).map(\.kind) == [.executing, .waiting, .executing])
        #expect(entry.waits.first?.from ?? .zero >= entry.running ?? .longest)
    }

    @Test("A step depends on those before it that ran at the same time, also if it is observed from the start on only")
    func concurrentSteps() async throws {
        let steps = ["a", "b", "c", "d"].map { IOBlockOperation<Int, Int>(name: $0) { $0 } }
        let last = IOBlockOperation<[Int], Int>(name: "last") { $0.count }
        let middle = IOBlockOperation<(Int, Int), Int>(name: "middle") { $0.0 + $0.1 }
        let macro = MacroOperation(steps[0]).then(concurrently: steps[1], steps[2]).then(middle)
            .then(concurrently: [steps[3]]).then(last)
        macro.addObserver(recorder)
        #expect(try await OperationQueue().run(macro.with(input: 1)) == 1)
        let ids = steps.map(\.observationID)
        #expect(try entry(middle).dependencies == [ids[1], ids[2]])
        #expect(try entry(last).dependencies == [ids[3]])
        #expect(try entry(steps[3]).dependencies == [middle.observationID])
        #expect(recorder.timeline.entries.count == 7)
    }

    @Test("A workflow that sleeps runs from its begin on, and its limit is that of other composites")
    func sleepingWorkflow() async throws {
        let clock = ManualClock()
        let child = ScriptedOperation("child")
        let workflow = WorkflowOperation<Void, Void>(name: "workflow", maxConcurrentOperationCount: 1) { flow in
            try await flow.run(child)
            try await flow.sleep(for: .seconds(1))
        }
        workflow.clock = clock
        workflow.addObserver(recorder)
        workflow.start()
        await clock.sleepers(atLeast: 1)
        clock.advance(by: .seconds(1))
        try await workflow.finished()
        let (all, one) = (try entry(workflow), try entry(child))
        #expect(try #require(all.running) <= #require(one.started) && all.waits.count == 1 && all.limit == 1)
        let gathered = [IOBlockOperation<Void, Int> { _ in 1 }].gathered(maxConcurrentOperationCount: 3)
        await run(gathered)
        #expect(try entry(gathered).limit == 3 && entry(child).limit == nil)
        let changed = CompoundOperation(maxConcurrentOperationCount: 1)
        try changed.addOperation { [unowned changed] in changed.maxConcurrentOperationCount = 4 }
        await run(changed)
        #expect(try entry(changed).limit == 4)
    }

    @Test("The number of retries, of waits and of dependencies that are kept has a bound, and the length of texts")
    func bounds() {
        let operation = AsyncOperation()
        for _ in 0..<20 { operation.addDependency(AsyncOperation()) }
        let name = String(repeating: "é", count: 1_000)
        var rows = TimelineRows(maximumCount: 2)
        func record(_ kind: OperationEvent.Kind, at time: Int64) {
            let event = OperationEvent(
                operation: operation.observationID, kind: kind, givenName: name, type: AsyncOperation.self,
                nanoseconds: time)
            rows.record(event, ObservedFacts(of: operation, at: kind), at: time)
        }
        record(.started, at: 1)
        for number in 1...250 {
            record(.waiting(for: "\(number)"), at: Int64(2 * number))
            record(.retrying(attempt: number, error: TestError.first, delay: .zero), at: Int64(2 * number + 1))
        }
        record(.finished(error: nil), at: 700)
        let entry = rows.timeline(startDate: Date(), now: 800).entries[0]
        #expect(entry.waits.map(\.reason) == (1...100).map(String.init) && entry.waits.last?.to != nil)
        #expect(entry.retries.map(\.attempt) == Array(1...100))
        #expect(entry.dependencies.count == 16)
        #expect(entry.name.utf8.count <= 1_000 && entry.name.hasPrefix("éé") && entry.name.hasSuffix("é…"))
    }

    @Test("What did not run because of another operation is recorded, counted and drawn so, and is no failure")
    func skipped() async throws {
        let failing = ScriptedOperation("login") { $0.finish(withError: TestError.first) }
        let compound = CompoundOperation(name: "sync", operations: [failing])
        var last: AsyncOperation = failing
        for number in 1...11 {
            let next = ScriptedOperation("page \(number)")
            next.addDependency(last)
            next.requireSuccess(of: last)
            try compound.addOperation(next)
            last = next
        }
        await run(compound)
        let timeline = recorder.timeline
        #expect(timeline.summary.failedCount == 1 && timeline.summary.skippedCount == 11)
        #expect("\(timeline.summary)".hasPrefix("13 operations, 1 failed, 11 did not run\n"))
        #expect(timeline.graph.nodes.count { $0.state == .skipped } == 11)
        #expect(timeline.text().contains("─ did not run") && timeline.svg().contains(">did not run</text>"))
        #expect(timeline.text().count { $0 == "!" } == 3, "The composite, the login and the legend")
        #expect(timeline.mermaid().contains("page 11 (did not run)"))
    }

    @Test(
        "What ran, and ended with the error of what did not, has failed, and what closures of a collection do is work")
    func failedBySkipped() async throws {
        let failing = ScriptedOperation("login") { $0.finish(withError: TestError.first) }
        failing.start()
        let skipped = ScriptedOperation("page")
        skipped.requireSuccess(of: failing)
        skipped.start()
        let task = TaskOperation(name: "task") { try await skipped.finished() }
        let strategy = Strategy.parallelItems.make { _, completion in
            usleep(1_000)
            completion(nil)
        }
        let items = strategy.makeOperation(on: [1, 2])
        for operation in [task, items] as [AsyncOperation] { await run(operation) }
        let timeline = recorder.timeline
        guard case .failed = timeline[task.observationID]?.outcome else {
            return _ = Issue.record("\(timeline.entries)")
        }
        #expect(timeline.summary.failedCount == 1 && timeline.summary.skippedCount == 0)
        #expect(timeline.summary.work >= .milliseconds(1) && timeline[items.observationID]?.isComposite == false)
    }

    @Test("Attempts that failed are recorded with the sentences of their errors, and delays, which are no work")
    func retries() async throws {
        let error = OperationTimeoutError(operation: "load", timeout: .seconds(5))
        let sentence = "The operation “load” took longer than its timeout of 5.0 seconds."
        let kinds: [OperationEvent.Kind] = [
            .retrying(attempt: 2, error: error, delay: .seconds(3)), .finished(error: error),
        ]
        #expect(
            kinds.map(\.description) == [
                "retries in 3.0 seconds, because attempt 2 failed: \(sentence)", "failed: \(sentence)",
            ])
        let delay = Duration.milliseconds(20)
        let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(delay), jitter: .none)
        let operation = RetryOperation(policy, name: "load") { _ in TaskOperation<Int> { throw error } }
        await run(operation)
        let entry = try entry(operation)
        #expect(entry.outcome == .failed(sentence) && entry.retries.map(\.error) == [sentence, sentence])
        #expect(entry.retries.map(\.attempt) == [1, 2] && entry.retries.allSatisfy { $0.delay == delay })
        #expect(entry.retries[0].time <= entry.retries[1].time)
        let timeline = recorder.timeline
        let waited = try #require(timeline.summary.waiting.first { $0.reason == "for the next attempt" })
        // A delay that is noted late, on a busy machine, ends with what comes next.
        let times = entry.retries.map(\.time) + [try #require(entry.finished)]
        let pauses = zip(times.dropFirst(), times).map { min($0 - $1, delay) }
        #expect(waited.duration == pauses.reduce(.zero, +) && waited.count == 2, "\(waited) \(pauses)")
        #expect(timeline.summary.work <= timeline.duration - waited.duration)
    }

    @Test("Cancellations are recorded, before the start and later") func cancellations() async throws {
        let early = ScriptedOperation("early")
        let late = ScriptedOperation("late", main: { _ in }, didCancel: { $0.finish() })
        let compound = CompoundOperation(operations: [early, late])
        early.addDependency(late)
        compound.addObserver(recorder)
        compound.start()
        await eventually("late has not begun") { late.isAtWork }
        compound.cancel()
        try? await compound.finished()
        let (one, two) = (try entry(early), try entry(late))
        #expect(one.outcome == .cancelled && one.running == nil && one.cancelled != nil && one.dependencies == [two.id])
        #expect(two.outcome == .success && two.cancelled ?? .longest <= two.finished ?? .zero)
        #expect(try entry(compound).outcome == .cancelled)
    }

    @Test("A recorder that is added after the start records what follows") func addedLate() throws {
        let operation = ScriptedOperation.idle("late")
        operation.start()
        operation.addObserver(recorder)
        operation.finish()
        let (entry, timeline) = (try entry(operation), recorder.timeline)
        #expect(entry.started == nil && entry.finished == .zero && entry.outcome == .success)
        #expect(timeline.summary.operationCount == 1 && timeline.criticalPath.map(\.operation) == [entry.id])
    }

    @Test("A recorder that is added during the work begins with what it sees first, also if that is a delay")
    func addedBeforeADelay() async throws {
        let (clock, policy) = (ManualClock(), RetryPolicy(backoff: .constant(.seconds(1)), jitter: .none))
        let isAdded = Gate()
        let operation = TaskOperation(name: "load", retry: policy) {
            await isAdded.opened()
            throw TestError.first
        }
        operation.clock = clock
        operation.start()
        operation.addObserver(recorder)
        isAdded.open()
        await eventually("the delay is not recorded") { recorder.timeline.entries.first?.retries.isEmpty == false }
        let timeline = recorder.timeline
        #expect(timeline.entries.first?.retries.first?.time == .zero && timeline.duration > .zero)
        #expect(timeline.text().contains("load") && timeline.summary.work == .zero)
        operation.cancel()
        try? await operation.finished()
    }

    @Test("An operation that has not finished is there, up to the moment of the question, with its name in the end")
    func unfinished() {
        let operation = ScriptedOperation.idle()
        operation.addObserver(recorder)
        #expect(recorder.timeline.entries.isEmpty && recorder.timeline.duration == .zero)
        operation.start()
        let (first, second) = (recorder.timeline, recorder.timeline)
        #expect(first.entries == second.entries && first.entries[0].isUnfinished)
        #expect(first.duration > first.entries[0].running ?? .longest && second.duration > first.duration)
        operation.name = "later"
        operation.finish()
        let last = recorder.timeline
        #expect(last.duration == last.entries[0].finished && last.entries[0].name == "later")
    }

    @Test("Operations above the maximum are counted when they finish") func maximumCount() {
        let small = OperationTimelineRecorder(maximumCount: 2)
        for number in 0..<5 {
            let operation = ScriptedOperation("\(number)")
            operation.addObserver(small)
            operation.start()
        }
        #expect(small.timeline.entries.map(\.name) == ["0", "1"] && small.timeline.droppedCount == 3)
        #expect(small.timeline.text().hasSuffix("3 other operations were not recorded."))
        #expect(small.timeline.graph.omittedCount == 3)
    }

    @Test("A recorder keeps no operation alive") func leaks() async throws {
        let tracker = LeakTracker()
        do {
            let compound = CompoundOperation(operations: (0..<3).map { tracker.track(ScriptedOperation("\($0)")) })
            tracker.track(compound)
            compound.addObserver(recorder)
            try await OperationQueue().run(compound)
        }
        await tracker.expectAllReleased()
        #expect(recorder.timeline.entries.count == 4)
    }

    @Test("A recorder cannot be made for less than one operation") func noMaximum() async {
        await #expect(processExitsWith: .failure) { _ = OperationTimelineRecorder(maximumCount: 0) }
    }
}
