import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Events of operations that wait before their `main()`, or do not come to it.
@Suite("Events of policies", .hangGuard) struct PolicyEventTests {
    private let recorder = EventRecorder()
    private let clock = ManualClock()

    private func load() -> ScriptedOperation {
        recorder.observe(ScriptedOperation("load"))
    }

    private var events: [String] { recorder.events(of: "load") }

    /// Suspends until an event of the operation was delivered.
    private func occurrence(of event: String) async {
        await recorder.occurrence(of: "load: \(event)")
    }

    // MARK: - Dependencies and bindings

    @Test("Bindings are no events: an operation starts when what it is bound to has finished") func bindings() async {
        let source = recorder.observe(TaskOperation(name: "source") { 1 })
        let target = recorder.observe(IOBlockOperation<Int, Int>(name: "target") { $0 + 1 })
        target.bind(\.input, to: source, \.output)
        let queue = OperationQueue()
        for operation in [target, source] as [Operation] { queue.addOperation(operation) }
        await recorder.end(of: "target")
        for name in ["source", "target"] { #expect(recorder.events(of: name) == ["started", "running", "finished"]) }
        let order = recorder.events.filter { $0 == "source: running" || $0 == "target: started" }
        #expect(order == ["source: running", "target: started"])
    }

    @Test("An operation whose dependency has failed starts, and finishes without running") func failedDependency() async
    {
        let source = ScriptedOperation("source") { $0.finish(withError: TestError.first) }
        let operation = load()
        operation.requireSuccess(of: source)
        source.start()
        operation.start()
        #expect(events == ["started", "finished: DependencyError"])
    }

    // MARK: - Conditions

    @Test("Each condition is waited for, in its order, and the operation runs after the last one") func conditions()
        async
    {
        let gates = [Gate(), Gate()]
        let operation = load()
        for (number, gate) in gates.enumerated() {
            operation.addCondition(name: "condition \(number)") { _ in
                await gate.opened()
                return .satisfied
            }
        }
        operation.start()
        let waiting = (0...1).map { "evaluating its condition “condition \($0)”" }
        #expect(events == ["started", waiting[0]])
        gates[0].open()
        await occurrence(of: waiting[1])
        #expect(events == ["started"] + waiting)
        gates[1].open()
        await recorder.end(of: "load")
        #expect(events == ["started"] + waiting + ["running", "finished"])
    }

    @Test("A condition that fails, throws or skips the operation ends it without “running”", arguments: 0...2)
    func unsatisfied(way: Int) async {
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

    @Test("An operation that is cancelled or finished during an evaluation ends immediately", arguments: [true, false])
    func endedDuringAnEvaluation(isCancelled: Bool) async {
        let gate = Gate()
        let operation = load()
        operation.addCondition(name: "online") { _ in
            await gate.opened()
            return .satisfied
        }
        operation.start()
        if isCancelled { operation.cancel(withError: TestError.reason) } else { operation.finish() }
        let end = isCancelled ? ["cancelled", "finished: reason"] : ["finished"]
        #expect(events == ["started", "evaluating its condition “online”"] + end)
        gate.open()
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

    @Test(
        "A prerequisite has events of its own, before the operation that needs it runs, whose observers do not see them"
    )
    func prerequisite() async {
        let all = EventRecorder()
        let condition = SignedIn(gate: Gate(), login: all.observe(ScriptedOperation("login")))
        let operation = all.observe(load())
        operation.addCondition(condition)
        operation.start()
        condition.gate.open()
        await all.end(of: "load")
        let (head, tail) = (["started", "evaluating its condition “signed in”"], ["running", "finished"])
        #expect(recorder.events == (head + tail).map { "load: \($0)" })
        #expect(
            all.events == head.map { "load: \($0)" } + ["login: started", "login: running", "login: finished"]
                + tail.map { "load: \($0)" })
    }

    // MARK: - Resources

    /// An operation that has exclusive access to the database until it is finished.
    private func holder(_ database: ExclusiveAccess) -> ScriptedOperation {
        let holder = ScriptedOperation.idle("holder")
        holder.require(database)
        holder.start()
        return holder
    }

    private let waitingForDatabase = "waiting for exclusive access to “database”, held by “holder”"

    @Test("A resource that is granted immediately is no event") func grantedImmediately() {
        let operation = load()
        operation.require(ExclusiveAccess("database"))
        operation.require(ConcurrencyLimit("host", 2))
        operation.start()
        #expect(events == ["started", "running", "finished"])
    }

    @Test("A resource that is not there is waited for, and the operation runs when it is granted") func granted() async
    {
        let database = ExclusiveAccess("database")
        let holder = holder(database)
        let operation = load()
        operation.require(database)
        operation.start()
        #expect(events == ["started", waitingForDatabase])
        holder.finish()
        await recorder.end(of: "load")
        #expect(events == ["started", waitingForDatabase, "running", "finished"])
    }

    @Test("Several resources are waited for together, after the conditions") func severalResources() async {
        let (database, host, gate) = (ExclusiveAccess("database"), ConcurrencyLimit("host", 1), Gate())
        let holder = ScriptedOperation.idle("holder")
        for resource in [database, host] { holder.require(resource) }
        holder.start()
        let operation = load()
        for resource in [database, host] { operation.require(resource) }
        operation.addCondition(name: "online") { _ in
            await gate.opened()
            return .satisfied
        }
        operation.start()
        gate.open()
        await occurrence(of: waitingForDatabase + ", and for the place of “host”")
        holder.finish()
        await recorder.end(of: "load")
        #expect(
            events == [
                "started", "evaluating its condition “online”", waitingForDatabase + ", and for the place of “host”",
                "running", "finished",
            ])
    }

    @Test("An operation that waits too long for a resource finishes without running") func timedOut() async {
        let database = ExclusiveAccess("database")
        let holder = holder(database)
        let operation = load()
        operation.clock = clock
        operation.require(database, within: .seconds(5))
        operation.start()
        await clock.pass(.seconds(5))
        await recorder.end(of: "load")
        #expect(events == ["started", waitingForDatabase, "finished: ResourceError"])
        holder.finish()
    }

    @Test(
        "An operation that is cancelled or finished while it waits for a resource ends immediately",
        arguments: [true, false])
    func endedWhileWaiting(isCancelled: Bool) {
        let database = ExclusiveAccess("database")
        let holder = holder(database)
        let operation = load()
        operation.require(database)
        operation.start()
        if isCancelled { operation.cancel() } else { operation.finish(withError: TestError.first) }
        let end = isCancelled ? ["cancelled", "finished: cancelled"] : ["finished: first"]
        #expect(events == ["started", waitingForDatabase] + end)
        holder.finish()
    }

    @Test("An operation that may not wait for a resource finishes immediately") func refused() {
        let host = ConcurrencyLimit("host", 1, maximumWaiting: 0)
        let holder = ScriptedOperation.idle("holder")
        holder.require(host)
        holder.start()
        let operation = load()
        operation.require(host)
        operation.start()
        #expect(events == ["started", "finished: ResourceError"])
        holder.finish()
    }

    @Test("An operation whose circuit breaker is open finishes without running") func circuitOpen() {
        let circuit = CircuitBreaker("service", minimumCalls: 1, clock: clock)
        for end in ["finished: first", "finished: CircuitOpenError"] {
            let recorder = EventRecorder()
            let operation = recorder.observe(ScriptedOperation("load") { $0.finish(withError: TestError.first) })
            operation.require(circuit)
            operation.start()
            let isRejected = end.contains("Circuit")
            #expect(recorder.events(of: "load") == ["started"] + (isRejected ? [] : ["running"]) + [end])
        }
    }

    // MARK: - Timeouts and delays

    /// An operation with a timeout of five seconds, that ends when it is cancelled, or goes on.
    private func limited(endsWhenCancelled: Bool = true) -> ScriptedOperation {
        let operation = ScriptedOperation("load", main: { _ in }) {
            if endsWhenCancelled { $0.finish(withError: CancellationError()) }
        }
        operation.clock = clock
        operation.timeout = .seconds(5)
        return recorder.observe(operation)
    }

    @Test("An operation that takes too long is cancelled, and its timeout is the outcome in the last event")
    func timeout() async {
        let operation = limited()
        operation.start()
        await clock.pass(.seconds(5))
        await recorder.end(of: "load")
        #expect(events == ["started", "running", "cancelled", "finished: OperationTimeoutError"])
    }

    @Test("A timeout that comes is one cancellation, also of an operation that succeeds nevertheless")
    func ignoredTimeout() async {
        let operation = limited(endsWhenCancelled: false)
        operation.start()
        await clock.pass(.seconds(5))
        await occurrence(of: "cancelled")
        operation.cancel()
        operation.finish()
        #expect(events == ["started", "running", "cancelled", "finished"])
    }

    @Test("A timeout that does not come is no event") func unusedTimeout() async {
        let operation = limited()
        operation.start()
        operation.finish()
        await clock.expectNoSleepers()
        #expect(events == ["started", "running", "finished"])
    }

    @Test("A timeout of no time cancels an operation that then does not run") func noTime() {
        let operation = limited()
        operation.timeout = .zero
        operation.start()
        #expect(events == ["started", "cancelled", "finished: OperationTimeoutError"])
    }

    @Test("The timeout of an operation that waits has not begun") func timeoutAfterWaiting() async {
        let database = ExclusiveAccess("database")
        let holder = holder(database)
        let operation = limited()
        operation.require(database)
        operation.start()
        clock.advance(by: .seconds(60))
        holder.finish()
        await occurrence(of: "running")
        await clock.pass(.seconds(5))
        await recorder.end(of: "load")
        #expect(
            events == ["started", waitingForDatabase, "running", "cancelled", "finished: OperationTimeoutError"])
    }

    @Test("A delay runs while its time passes, and is cancelled like others", arguments: [true, false])
    func delay(isCancelled: Bool) async {
        let delay = recorder.observe(DelayOperation(for: .seconds(5), name: "load"))
        delay.clock = clock
        delay.start()
        await clock.sleepers()
        #expect(events == ["started", "running"])
        if isCancelled { delay.cancel() } else { clock.advance(by: .seconds(5)) }
        await recorder.end(of: "load")
        #expect(
            events == ["started", "running"] + (isCancelled ? ["cancelled", "finished: cancelled"] : ["finished"]))
    }

    @Test("An operation that is added with a delay has its first event after that") func addedWithADelay() async {
        let operation = load()
        OperationQueue().addOperation(operation, after: .seconds(5), clock: clock)
        await clock.sleepers()
        #expect(events.isEmpty)
        clock.advance(by: .seconds(5))
        await recorder.end(of: "load")
        #expect(events == ["started", "running", "finished"])
    }
}
