import OperationKitTestSupport

@testable import OperationKit

extension EventLog {
    /// An operation that writes down its name when its work begins, and executes until the test finishes it.
    func held(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        let operation = ScriptedOperation(name) { _ in self.add(name) }
        for resource in resources { operation.require(resource) }
        return operation
    }

    func begun(_ name: String) async {
        await eventually("\(name) has not begun: \(events)") { events.contains(name) }
    }
}

@Suite("Resources of composites", .hangGuard) struct SurroundingResourceTests {
    private let database = ExclusiveAccess("database")
    private let host = ExclusiveAccess("host")
    private let log = EventLog()

    /// A compound that has the database, with a child that works.
    private func sync(_ limit: Int = 1) async -> (CompoundOperation, child: ScriptedOperation, OperationResource) {
        let database = ConcurrencyLimit("database", limit)
        let child = log.held("child")
        let sync = CompoundOperation(name: "sync", operations: [child])
        sync.require(database)
        sync.start()
        await log.begun("child")
        return (sync, child, database)
    }

    private func heldBySync(_ operation: String) -> ResourceError {
        .heldByComposite(operation: operation, resource: "database", composite: "sync")
    }

    @Test(
        "An operation that requires what a composite around it has ends with an error",
        arguments: ["", "started", "inner", "started, inner", "inner, started"], [1, 2])
    func ring(how: String, limit: Int) async throws {
        let (sync, child, database) = await sync(limit)
        let (other, operation) = (log.held("other", database), log.held("operation", database))
        if how.contains("started"), limit > 1 { other.start() }
        if how.hasPrefix("started") { operation.start() }
        let inner = how.contains("inner") ? CompoundOperation(operations: [operation]) : nil
        if how == "inner, started" {
            inner?.require(host)
            inner?.start()
            await eventually("does not wait") { database.waitingCount == 1 }
        }
        try sync.addOperation(inner ?? operation)
        await eventually("not refused: \(operation.debugDescription)") { operation.isFinished }
        #expect(operation.error as? ResourceError == heldBySync("operation"))
        for operation in [child, other] { operation.finish() }
        try? await sync.finished()
    }

    @Test("An operation that waits and cannot be added goes on waiting", arguments: [false, true])
    func refusedAddition(isAfterEnd: Bool) async throws {
        let (sync, child, database) = await sync()
        let operation = log.held("operation", database)
        operation.start()
        let add = { @Sendable [unowned sync] in
            _ = #expect(throws: CompoundAdditionError.self) {
                try sync.addOperations(isAfterEnd ? [operation] : [operation, child])
            }
        }
        if isAfterEnd { sync.asyncCompletionBlock = { _ in add() } } else { add() }
        child.finish()
        try await sync.finished()
        await eventually("still waits") { log.events.contains("operation") || operation.isFinished }
        operation.finish()
        #expect(operation.error == nil)
    }

    @Test("What waits inside a composite which then gets what it needs is refused", arguments: [1, 2], [false, true])
    func composites(depth: Int, startsInside: Bool) async throws {
        let holder = log.held("holder", database, host)
        holder.start()
        let early = log.held("early", database, host)
        if !startsInside { early.start() }
        var sync = CompoundOperation(operations: [early])
        if depth == 2 { sync = CompoundOperation(operations: [sync]) }
        sync.name = "sync"
        sync.queuePriority = .high
        sync.require(database)
        if startsInside { early.start() }
        sync.start()
        holder.finish()
        await #expect(throws: CompoundOperationError.self) { try await sync.finished() }
        #expect(early.error as? ResourceError == heldBySync("early"))
    }

    @Test("A child that waits for what its composite gets is refused", arguments: ["closure", "prerequisite", "step"])
    func startedByHand(kind: String) async throws {
        let holder = log.held("holder", database)
        holder.start()
        let work: @Sendable (Int) async throws -> Int = { $0 }
        let child =
            kind == "closure" ? IOTaskOperation(retry: RetryPolicy(), work) : IOTaskOperation(name: "child", work)
        child.input = 1
        if kind == "prerequisite" {
            let first = ScriptedOperation.named("first", in: log, requiring: [database])
            child.addCondition(PrerequisiteTests.Needs(log: log) { first })
        } else {
            child.require(database)
        }
        if kind == "step" { child.start() }
        let composite: AsyncOperation =
            kind == "step"
            ? MacroOperation(child).then(IOBlockOperation { $0 }) : CompoundOperation(operations: [child])
        composite.name = "composite"
        composite.queuePriority = .high
        composite.require(database)
        composite.start()
        if kind != "step" { child.start() }
        await eventually("does not wait: \(database.waitingCount)") { database.waitingCount == 2 }
        holder.finish()
        try? await composite.finished()
        #expect("\(child.error as Any)".contains("heldByComposite"))
    }

    enum Kind: CaseIterable { case retry, nested, closure, repetition }

    /// An operation with one attempt, or as many as the policy says. If they are operations, they require `own`.
    private func attempt(
        _ kind: Kind, _ policy: RetryPolicy = RetryPolicy(maximumAttempts: 1),
        own: CircuitBreaker = CircuitBreaker("own"), _ work: @escaping @Sendable () async throws -> Void
    ) -> AsyncOperation {
        let make: @Sendable (Int) -> AsyncOperation = { _ in
            let attempt = TaskOperation(work)
            attempt.require(own)
            return attempt
        }
        return switch kind {
        case .retry: RetryOperation(policy, makeOperation: make)
        case .nested: RetryOperation(policy) { _ in RetryOperation(policy, makeOperation: make) }
        case .closure: TaskOperation(retry: policy, work)
        case .repetition: RepeatOperation(every: .seconds(1), maximumCount: 1, makeOperation: make)
        }
    }

    @Test(
        "An attempt ends for the reason that cancelled the whole, for the circuit breaker of that, and not for its own",
        arguments: Kind.allCases, ["timeout", "reason", "none", "success"])
    func reason(kind: Kind, end: String) async throws {
        func makeCircuit() -> CircuitBreaker { CircuitBreaker("service", minimumCalls: 1) }
        let (clock, circuit, own, begun) = (ManualClock(), makeCircuit(), makeCircuit(), Gate())
        let call = attempt(kind, own: own) {
            begun.open()
            do { try await cancellation() } catch { if end != "success" { throw error } }
        }
        call.clock = clock
        call.timeout = .seconds(5)
        call.require(database)
        call.require(circuit)
        call.start()
        await begun.opened()
        switch end {
        case "timeout": clock.advance(by: .seconds(5))
        case "reason", "success": call.cancel(withError: TestError.reason)
        default: call.cancel()
        }
        try await call.waitForFinish()
        #expect(circuit.state == (end == "timeout" || end == "reason" ? .open : .closed) && own.state == .closed)
    }

    @Test("An attempt waits with the priority of the whole, by its clock, until cancelled", arguments: Kind.allCases)
    func inherited(kind: Kind) async throws {
        let (clock, holder, normal) = (ManualClock(), log.held("holder", database), log.held("normal", database))
        holder.start()
        normal.start()
        let urgent = attempt(kind) { [log] in log.add("urgent") }
        urgent.queuePriority = .high
        let (impatient, cancelled) = (attempt(kind) {}, attempt(kind) {})
        impatient.clock = clock
        impatient.require(database, within: .seconds(3))
        for operation in [urgent, cancelled] { operation.require(database) }
        for operation in [urgent, impatient, cancelled] { operation.start() }
        await eventually("do not wait") { database.waitingCount == 4 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.finished() }
        await clock.pass(.seconds(3))
        await #expect(throws: ResourceError.self) { try await impatient.finished() }
        await eventually("a request is left") { database.waitingCount == 2 }
        holder.finish()
        try await urgent.finished()
        await log.begun("normal")
        #expect(log.events == ["holder", "urgent", "normal"])
        normal.finish()
    }

    @Test("An attempt waits with the priority of the whole for what only it requires") func ownRequest() async throws {
        let (holder, normal) = (log.held("holder", database), log.held("normal", database))
        for operation in [holder, normal] { operation.start() }
        let urgent = RetryOperation(RetryPolicy(maximumAttempts: 1)) { [log, database] _ in
            let attempt = ThrowingBlockOperation { log.add("urgent") }
            attempt.require(database)
            return attempt
        }
        urgent.queuePriority = .high
        urgent.start()
        await eventually("does not wait") { database.waitingCount == 2 }
        holder.finish()
        try await urgent.finished()
        await log.begun("normal")
        #expect(log.events == ["holder", "urgent", "normal"])
        normal.finish()
    }

    @Test("What a retry requires, each attempt requires, and nothing in between", arguments: [Kind.retry, .closure])
    func retry(kind: Kind) async throws {
        let (clock, log, count) = (ManualClock(), log, Shared(0))
        let retry = attempt(kind, RetryPolicy(maximumAttempts: 2, backoff: .constant(.seconds(5)))) {
            let number = count.increment()
            log.add("attempt \(number)")
            if number == 1 { throw TestError.first }
        }
        retry.clock = clock
        retry.require(database)
        retry.start()
        await clock.sleepers()
        let other = log.held("other", database)
        other.start()
        #expect(log.events == ["attempt 1", "other"])
        clock.advance(by: .seconds(5))
        let wait = "waiting for exclusive access to “database”, held by “other”"
        // The resource knows of the wait a moment before the task does.
        await eventually("is \(retry.debugDescription)") { retry.debugDescription.contains(wait) }
        other.finish()
        try await retry.finished()
        #expect(log.events == ["attempt 1", "other", "attempt 2"] && database.waitingCount == 0)
    }

    @Test("An attempt that is refused what is held around it is not tried again", arguments: [false, true])
    func refusedAttempt(isRepetition: Bool) async throws {
        let attempts = Shared(0)
        let make: @Sendable (Int) -> TaskOperation<Int> = { _ in
            _ = attempts.increment()
            return TaskOperation { 1 }
        }
        let retry: IOOperation<Void, Int> =
            isRepetition
            ? RepeatOperation(every: .microseconds(1), continuesAfterFailure: true, makeOperation: make)
            : RetryOperation(RetryPolicy(maximumAttempts: 3, backoff: .constant(.zero)), makeOperation: make)
        retry.require(database)
        let sync = CompoundOperation(name: "sync", operations: [retry])
        sync.require(database)
        await Start.byHand(sync)
        #expect(sync.error is CompoundOperationError && attempts.value == 1)
        #expect(text(retry.error).contains("heldByComposite"))
    }
}

@Suite("Requirements of operations without work", .hangGuard) struct WorklessOperationTests {
    private static let withoutWork: [@Sendable () -> AsyncOperation] = [
        { IOBlockOperation<Int, Int> { $0 } }, { IOTaskOperation<Int, Int> { $0 } }, { MapOperation<Int, Int> { $0 } },
        { MacroOperation(Step<Int, Int>.increment("step")) }, { Waterfall<Int, Int>() },
        { Step<Int, Int>.increment("source").map { $0 } },
        { WorkflowOperation { (input: Int, _) in input } },
        {
            let child = AsyncOperation()
            return CompoundOperation(operations: [child, child])
        },
        {
            let source = TaskOperation { 1 }
            return [source, source].gathered()
        },
        {
            let step = Step<Int, Int>.increment("step")
            return MacroOperation(step).then(step).with(input: 1)
        },
        {
            let source = TaskOperation { 1 }
            return withExtendedLifetime(MacroOperation(source)) { source.map { $0 } }
        },
        { HedgedOperation(after: .zero, maximumAttempts: 0) { _ in TaskOperation { 1 } } },
        { RepeatOperation(every: .zero) { _ in TaskOperation { 1 } } },
        { RetryOperation(RetryPolicy(maximumAttempts: 0)) { _ in TaskOperation { 1 } } },
        { MapOperation<Int, Int>(maxConcurrentOperationCount: 0) { $0 }.with(input: []) },
    ]

    @Test("What can't begin its work is no call, uses no permit and is not announced", arguments: withoutWork.indices)
    func workless(index: Int) async throws {
        let (log, circuit) = (EventLog(), CircuitBreaker("service", minimumCalls: 1))
        let rate = RateLimit("rate", 1, per: .seconds(60), clock: ManualClock())
        let recorder = EventRecorder { operation, event in
            if event.isRunning, operation.parentCompound == nil { log.add("running") }
        }
        for (isObserved, requires) in [(false, true), (true, true), (true, false)] {
            let operation = Self.withoutWork[index]()
            if isObserved { operation.addObserver(recorder) }
            if requires {
                operation.require(circuit)
                operation.require(rate)
            }
            await Start.byHand(operation)
            #expect(operation.error != nil && circuit.state == .closed)
        }
        #expect(log.events.isEmpty)
        let next = AsyncOperation()
        next.require(rate, within: .zero)
        await Start.byHand(next)
        #expect(next.error == nil)
    }
}
