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

    @Test("An operation that requires what a composite around it has ends with an error", arguments: 0..<5, [1, 2])
    func ring(index: Int, limit: Int) async throws {
        let (sync, child, database) = await sync(limit)
        let other = log.held("other", database)
        if index > 1, limit > 1 { other.start() }
        let operation = log.held("operation", database)
        switch index {
        case 0: try sync.addOperation(operation)
        case 1: try sync.addOperation(CompoundOperation(operations: [operation]))
        case 2:
            operation.start()
            #expect(operation.isExecuting)
            try sync.addOperation(operation)
        case 3:
            operation.start()
            let inner = CompoundOperation(operations: [operation])
            try sync.addOperation(inner)
        default:
            let inner = CompoundOperation(operations: [operation])
            inner.require(host)
            inner.start()
            await eventually("does not wait") { database.waitingCount == 1 }
            try sync.addOperation(inner)
        }
        await eventually("not refused: \(operation.debugDescription)") { operation.isFinished }
        #expect(
            operation.error as? ResourceError
                == .heldByComposite(operation: "operation", resource: "database", composite: "sync"))
        child.finish()
        try? await sync.finished()
        other.finish()
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

    @Test(
        "An operation that waits inside a composite which then gets what it requires is refused",
        arguments: [1, 2], [false, true])
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
        #expect(
            early.error as? ResourceError
                == .heldByComposite(operation: "early", resource: "database", composite: "sync"))
    }

    @Test(
        "A child that was started by hand, and waits for what its composite then gets, is refused",
        arguments: ["closure", "prerequisite", "step"])
    func startedByHand(kind: String) async throws {
        let holder = log.held("holder", database)
        holder.start()
        var child = IOTaskOperation<Int, Int>(name: "child") { $0 }.with(input: 1)
        if kind == "closure" {
            child = IOTaskOperation(name: "child", retry: RetryPolicy()) { (number: Int) in number }.with(input: 1)
        }
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

    private func attempt(_ kind: Kind, _ work: @escaping @Sendable () async throws -> Void) -> AsyncOperation {
        let once = RetryPolicy(maximumAttempts: 1)
        return switch kind {
        case .retry: RetryOperation(once) { _ in TaskOperation(work) }
        case .nested: RetryOperation(once) { _ in RetryOperation(once) { _ in TaskOperation(work) } }
        case .closure: TaskOperation(retry: once, work)
        case .repetition: RepeatOperation(every: .seconds(1), maximumCount: 1) { _ in TaskOperation(work) }
        }
    }

    @Test(
        "For the circuit breaker of the whole, an attempt ends for the reason for which the whole was cancelled",
        arguments: Kind.allCases, ["timeout", "reason", "none", "success"])
    func reason(kind: Kind, end: String) async throws {
        let (clock, circuit, begun) = (ManualClock(), CircuitBreaker("service", minimumCalls: 1), Gate())
        let call = attempt(kind) {
            begun.open()
            do { try await cancellation() } catch { if end != "success" { throw error } }
        }
        call.clock = clock
        call.timeout = .seconds(5)
        call.require(circuit)
        call.start()
        await begun.opened()
        switch end {
        case "timeout": clock.advance(by: .seconds(5))
        case "reason", "success": call.cancel(withError: TestError.reason)
        default: call.cancel()
        }
        try await call.waitForFinish()
        #expect(circuit.state == (end == "timeout" || end == "reason" ? .open : .closed))
    }

    @Test("For a circuit breaker that an attempt itself requires, it ends as cancelled when the whole is cancelled")
    func ownCircuit() async throws {
        let (circuit, begun) = (CircuitBreaker("service", minimumCalls: 1), Gate())
        let call = RetryOperation(RetryPolicy()) { _ in
            let attempt = TaskOperation {
                begun.open()
                try await cancellation()
            }
            attempt.require(circuit)
            return attempt
        }
        call.require(database)
        let other = CircuitBreaker("other", minimumCalls: 1)
        call.require(other)
        call.start()
        await begun.opened()
        call.cancel(withError: TestError.reason)
        try await call.waitForFinish()
        #expect(circuit.state == .closed && other.state == .open)
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

    @Test(
        "What a retry requires each of its attempts requires, and describes as its wait, and nothing is held in between",
        arguments: [Kind.retry, .closure])
    func retry(kind: Kind) async throws {
        let (clock, log, count) = (ManualClock(), log, Shared(0))
        let policy = RetryPolicy(maximumAttempts: 2, backoff: .constant(.seconds(5)))
        let attempt: @Sendable () async throws -> Void = {
            let number = count.increment()
            log.add("attempt \(number)")
            if number == 1 { throw TestError.first }
        }
        let retry: AsyncOperation =
            kind == .closure
            ? TaskOperation(retry: policy, attempt) : RetryOperation(policy) { _ in TaskOperation(attempt) }
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
            attempts.change { $0 += 1 }
            return TaskOperation { 1 }
        }
        let retry: IOOperation<Void, Int> =
            isRepetition
            ? RepeatOperation(every: .microseconds(1), continuesAfterFailure: true, makeOperation: make)
            : RetryOperation(RetryPolicy(maximumAttempts: 3, backoff: .constant(.zero)), makeOperation: make)
        retry.require(database)
        let sync = CompoundOperation(name: "sync", operations: [retry])
        sync.require(database)
        sync.start()
        await #expect(throws: CompoundOperationError.self) { try await sync.finished() }
        #expect(attempts.value == 1)
        guard case .heldByComposite? = retry.error as? ResourceError else {
            return #expect(Bool(false), "\(text(retry.error))")
        }
    }
}

@Suite("Requirements of operations without work", .hangGuard) struct WorklessOperationTests {
    /// Operations whose work can't begin.
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
    ]

    @Test(
        "What ends because its work can't begin is no call, uses no permit and is not announced",
        arguments: withoutWork.indices)
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
