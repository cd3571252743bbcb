import OperationKitTestSupport

@testable import OperationKit

@Suite("Events of policies", .hangGuard) struct PolicyEventTests {
    private let recorder = EventRecorder()
    private let clock = ManualClock()

    private func load() -> ScriptedOperation {
        recorder.observe(ScriptedOperation("load"))
    }

    private var events: [String] { recorder.events(of: "load") }

    private func occurrence(of event: String) async {
        await recorder.occurrence(of: "load: \(event)")
    }

    @Test("A condition that fails ends it without “running”", arguments: 0...2) func unsatisfied(way: Int) async {
        let gate = Gate()
        let operation = load()
        operation.addCondition(name: "online") { _ in
            await gate.opened()
            switch way {
            case 0: return .failed(TestError.first)
            case 1: throw TestError.first
            default: return .skipped
            }
        }
        operation.start()
        gate.open()
        await recorder.end(of: "load")
        let end = way < 2 ? ["finished: ConditionError"] : ["cancelled", "finished: cancelled"]
        #expect(events == ["started", "evaluating its condition “online”"] + end)
    }

    /// A condition that needs an operation, which is made when a gate is open.
    private struct SignedIn: OperationCondition {
        let name = "signed in"
        let gate: Gate
        let login: AsyncOperation

        func prerequisite(for operation: AsyncOperation) -> Operation? {
            gate.pass()
            return login
        }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
    }

    @Test("A prerequisite has events of its own, which others do not see") func prerequisite() async {
        let all = EventRecorder()
        let condition = SignedIn(gate: Gate(), login: all.observe(ScriptedOperation("login")))
        let operation = all.observe(load())
        operation.addCondition(condition)
        operation.start()
        condition.gate.open()
        await all.end(of: "load")
        let head = ["load: started", "load: evaluating its condition “signed in”"]
        let tail = ["load: running", "load: finished"]
        #expect(recorder.events == head + tail)
        #expect(all.events == head + ["login: started", "login: running", "login: finished"] + tail)
    }

    private let waitingForDatabase = "waiting for exclusive access to “database”"

    @Test("Conditions are waited for one by one, resources together after them") func severalResources() async {
        let (database, host, gates) = (ExclusiveAccess("database"), ConcurrencyLimit("host", 1), [Gate(), Gate()])
        let (holder, operation) = (EventLog().held("holder", database, host), load())
        holder.start()
        for resource in [database, host] { operation.require(resource) }
        for (number, gate) in gates.enumerated() {
            operation.addCondition(name: "condition \(number)") { _ in
                await gate.opened()
                return .satisfied
            }
        }
        operation.start()
        let evaluating = (0...1).map { "evaluating its condition “condition \($0)”" }
        for number in 0...1 {
            await occurrence(of: evaluating[number])
            #expect(events == ["started"] + evaluating[...number])
            gates[number].open()
        }
        let waiting = waitingForDatabase + ", and for the place of “host”"
        await occurrence(of: waiting)
        holder.finish()
        await recorder.end(of: "load")
        #expect(events == ["started"] + evaluating + [waiting, "running", "finished"])
    }

    @Test("An operation that does not come to its work finishes without an event of that") func withoutWork() async {
        let (database, circuit) = (
            ExclusiveAccess("database", maximumWaiting: 1), CircuitBreaker("service", minimumCalls: 1, clock: clock)
        )
        let (failed, holder) = (
            ScriptedOperation { $0.finish(withError: TestError.first) }, EventLog().held("holder", database)
        )
        failed.require(circuit)
        for operation in [failed, holder] { operation.start() }
        let ways: [(@Sendable (ScriptedOperation) -> Void, [String])] = [
            ({ $0.requireSuccess(of: failed) }, ["finished: DependencyError"]),
            ({ $0.require(circuit) }, ["finished: CircuitOpenError"]),
            ({ $0.timeout = .zero }, ["cancelled", "finished: OperationTimeoutError"]),
            ({ $0.require(database, within: .seconds(5)) }, [waitingForDatabase, "finished: ResourceError"]),
            ({ $0.require(database) }, ["finished: ResourceError"]),
        ]
        let operations = ways.enumerated().map { number, way in
            let operation = recorder.observe(ScriptedOperation("\(number)"))
            operation.clock = clock
            way.0(operation)
            operation.start()
            return operation
        }
        await clock.pass(.seconds(5))
        await recorder.end(of: "3")
        for (number, way) in ways.enumerated() { #expect(recorder.events(of: "\(number)") == ["started"] + way.1) }
        holder.finish()
        withExtendedLifetime(operations) {}
    }

    /// Three attempts with a second in between, of an operation whose attempts fail up to a number.
    private func retry(failures: Int) -> RetryOperation<Void, Void> {
        let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(1)), jitter: .none)
        let retry = RetryOperation(policy, name: "load") { number in
            ScriptedOperation { $0.finish(withError: number <= failures ? TestError.numbered(number) : nil) }
        }
        retry.clock = clock
        return recorder.observe(retry)
    }

    /// All events of one attempt that ends in this way.
    private func attempt(_ number: Int, _ end: String) -> [String] {
        ["added to load", "started", "running", end].map { "load, attempt \(number): \($0)" }
    }

    private func retrying(after number: Int, _ error: String) -> String {
        "load: retrying after attempt \(number) and \(Duration.seconds(1)): \(error)"
    }

    private let start = ["load: started", "load: running"]

    @Test("Each attempt is a child, with events in between", arguments: [2, 3]) func retries(failures: Int) async {
        retry(failures: failures).start()
        for number in 1...2 {
            await recorder.occurrence(of: retrying(after: number, "numbered(\(number))"))
            await clock.pass(.seconds(1))
        }
        let attempts = (1...2).flatMap {
            attempt($0, "finished: numbered(\($0))") + [retrying(after: $0, "numbered(\($0))")]
        }
        let end = failures == 2 ? "finished" : "finished: numbered(3)"
        #expect(await recorder.end(of: "load") == start + attempts + attempt(3, end) + ["load: \(end)"])
    }

    @Test("An attempt of a closure waits for its resources with an event, as an operation does, and says who has them")
    func attemptRequires() async throws {
        let connections = ConcurrencyLimit("connections", 2)
        let holders = ["a", "b"].map { EventLog().held($0, connections) }
        for holder in holders { holder.start() }
        let operation = recorder.observe(TaskOperation(name: "load", retry: RetryPolicy(maximumAttempts: 2)) {})
        operation.require(connections)
        operation.start()
        let waiting = "waiting for one of 2 places of “connections”"
        await occurrence(of: waiting)
        #expect(operation.debugDescription.contains(waiting + ", held by “a” and “b”"))
        for holder in holders { holder.finish() }
        await recorder.end(of: "load")
        #expect(events == ["started", "running", waiting, "running", "finished"])
        #expect(operation.withState { $0.gates?.helper } == nil)
    }

    @Test("An attempt of a closure that is refused does not run") func refusedAttempt() async {
        let (database, policy) = (ExclusiveAccess("database"), RetryPolicy(maximumAttempts: 1))
        let holder = EventLog().held("holder", database)
        holder.start()
        let operation = recorder.observe(TaskOperation(name: "load", retry: policy) {})
        operation.clock = clock
        operation.require(database, within: .seconds(1))
        operation.start()
        await occurrence(of: waitingForDatabase)
        await clock.pass(.seconds(1))
        await recorder.end(of: "load")
        #expect(events == ["started", "running", waitingForDatabase, "finished: ResourceError"])
        holder.finish()
    }

    @Test("The attempt that loses is cancelled after the end of the one that wins") func hedging() async {
        let attempts = (1...2).map { _ in ManualOperation<Void, Void>() }
        let hedged = HedgedOperation(after: .seconds(1), name: "load") { attempts[$0 - 1] }
        hedged.clock = clock
        recorder.observe(hedged).start()
        await clock.pass(.seconds(1))
        for attempt in attempts { await attempt.started() }
        attempts[1].finish()
        let events = await recorder.end(of: "load")
        let loser = ["cancelled", "finished: cancelled"].map { "load, attempt 1: \($0)" }
        #expect(events.suffix(4) == ["load, attempt 2: finished"] + loser + ["load: finished"])
        #expect(events.count == 3 + 5 + 4)
    }

    @Test("Events come around the work in its state", arguments: [false, true]) func states(isCancelledInMain: Bool) {
        let log = EventLog()
        let recorder = EventRecorder { operation, event in
            let states = [
                operation.isExecuting ? "executing" : nil, operation.isCancelled ? "cancelled" : nil,
                operation.isFinished ? "finished" : nil, operation.error.map(text),
            ]
            log.add("\(event.kind.line): \(states.compactMap(\.self).joined(separator: ", "))")
        }
        let operation = ScriptedOperation(
            main: {
                log.add("main")
                if isCancelledInMain { $0.cancel() }
                log.add("main ends")
            },
            didCancel: {
                log.add("didCancel")
                $0.finish(withError: TestError.first)
            })
        operation.asyncCompletionBlock = { _ in log.add("asyncCompletionBlock") }
        recorder.observe(operation).start()
        operation.cancel()
        let cancelled = "cancelled: executing, cancelled"
        #expect(
            log.events == ["started: executing", "running: executing", "main"]
                + (isCancelledInMain ? [cancelled, "main ends"] : ["main ends", cancelled])
                + ["didCancel", "asyncCompletionBlock", "finished: first: cancelled, finished, first"])
    }

    @Test("The time of a wait has begun when observers hear of it, or its attempt begins", arguments: 0...3)
    func timeOfWait(way: Int) async {
        let (clock, database) = (clock, ExclusiveAccess("database"))
        let holder = EventLog().held("holder", database)
        holder.start()
        let operation: AsyncOperation =
            switch way {
            case 0: WorkflowOperation<Void, Void> { try await $0.sleep(for: .seconds(1)) }
            case 1: retry(failures: 1)
            case 2: ScriptedOperation("load")
            default:
                HedgedOperation(after: .seconds(1)) { number in
                    TaskOperation {
                        if number > 1 { return }
                        clock.advance(by: .seconds(1))
                        try await Task.sleep(for: .seconds(3_600))
                    }
                }
            }
        operation.clock = clock
        if way == 2 { operation.require(database, within: .seconds(1)) }
        let observer = EventRecorder { _, event in
            switch event.kind {
            case .waiting, .retrying: clock.advance(by: .seconds(1))
            default: break
            }
        }
        operation.addObserver(observer)
        operation.start()
        _ = try? await operation.finished()
        #expect(operation.isFinished && (operation.error is ResourceError) == (way == 2))
        holder.finish()
    }

    @Test("What is cancelled while it waits no longer waits in its completion block") func cancelledWait() async {
        let (database, operation) = (ExclusiveAccess("database"), load())
        let (holder, counts) = (EventLog().held("holder", database), Shared<[Int]>([]))
        holder.start()
        operation.require(database)
        operation.asyncCompletionBlock = { _ in counts.change { $0.append(database.waitingCount) } }
        operation.start()
        #expect(database.waitingCount == 1)
        operation.cancel()
        #expect(counts.value == [0])
        holder.finish()
    }

    @Test("An attempt that works when its operation is finished has what it requires until then") func finishedAttempt()
        async
    {
        let (database, begun, counts) = (ExclusiveAccess("database"), Gate(), Shared<[Int]>([]))
        let operation = TaskOperation(name: "load", retry: RetryPolicy(maximumAttempts: 2)) {
            begun.open()
            try await Task.sleep(for: .seconds(3_600))
        }
        operation.require(database)
        operation.start()
        await begun.opened()
        let next = load()
        next.require(database)
        next.start()
        operation.asyncCompletionBlock = { _ in counts.change { $0.append(database.waitingCount) } }
        operation.finish(withError: TestError.first)
        #expect(counts.value == [1])
        next.finish()
        _ = try? await next.finished()
    }

    @Test("Events call an operation what it is called when they are delivered") func names() {
        let operation = recorder.observe(ScriptedOperation.idle("first"))
        let compound = CompoundOperation(name: "all", operations: [operation])
        operation.name = "second"
        operation.start()
        operation.name = "third"
        operation.finish()
        let events = ["first: added to all", "second: started", "second: running", "third: finished"]
        #expect(recorder.events == events)
        compound.cancel()
    }
}
