import OperationKitTestSupport

@testable import OperationKit

extension EventLog {
    /// An operation that writes down its name when its work begins, and executes until the test finishes it.
    func held(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        let operation = ScriptedOperation(name) { _ in self.add(name) }
        for resource in resources { operation.require(resource) }
        return operation
    }

    /// Suspends until the work with a name has begun.
    func begun(_ name: String) async {
        await eventually("\(name) has not begun: \(events)") { events.contains(name) }
    }
}

@Suite("Resources", .hangGuard) struct ResourceTests {
    private let log = EventLog()

    @Test("A resource that is required twice is waited for the shorter time, whichever comes first")
    func requiredTwice() {
        let database = ExclusiveAccess("database")
        for durations: [Duration?] in [[nil, .seconds(1)], [.seconds(1), nil], [.seconds(2), .seconds(1)]] {
            var request = ResourceRequest()
            for duration in durations { request.add(database, within: duration) }
            #expect(request.resources.count == 1 && request.shortest?.duration == .seconds(1))
            let breaker = CircuitBreaker("api")
            request.add(breaker)
            var other = ResourceRequest()
            other.add(request)
            other.add(breaker)
            #expect(other.circuitBreakers.count == 1 && other.resources.count == 1)
        }
    }

    @Test("A wait whose time is over just after it was granted has ended nothing") func expiredAfterGrant() async throws
    {
        let database = ExclusiveAccess("database")
        let (holder, next) = (log.held("holder", database), log.held("next", database))
        holder.start()
        await log.begun("holder")
        let lease = try #require(holder.withState { $0.gates?.lease } as? ResourceLease)
        #expect(ResourcePool.shared.expired(try #require(lease.requestID))?.count == nil)
        next.start()
        #expect(log.events == ["holder"])
        holder.finish()
        await log.begun("next")
        next.finish()
    }

    @Test("An operation says which one it comes after where its resource is free, and runs when that one gives up")
    func afterAnother() async throws {
        let (database, network, clock) = (ExclusiveAccess("database"), ExclusiveAccess("network"), ManualClock())
        let (holder, both, next) = (log.held("import", network), log.held("both"), log.held("next", database))
        both.clock = clock
        both.require(database)
        both.require(network, within: .seconds(1))
        for operation in [holder, both, next] { operation.start() }
        #expect(
            next.debugDescription.hasPrefix(
                "“next”: waiting for exclusive access to “database”, after “both”"))
        await clock.pass(.seconds(1))
        await #expect(throws: ResourceError.self) { try await both.finished() }
        await log.begun("next")
        for operation in [holder, next] {
            operation.finish()
            try await operation.finished()
        }
    }

    @Test("A closure that is retried and waits for a resource ends when it is cancelled, and leaves no request")
    func cancelledAttempt() async throws {
        let database = ExclusiveAccess("database")
        let holder = log.held("import", database)
        holder.start()
        let load = TaskOperation(name: "load", retry: RetryPolicy(maximumAttempts: 3)) { 1 }
        load.require(database)
        load.start()
        await eventually("“load” does not wait") { database.waitingCount == 1 }
        load.cancel()
        await #expect(throws: CancellationError.self) { try await load.value }
        // The attempt is told a moment before its request is withdrawn.
        await eventually("a request is left") { database.waitingCount == 0 }
        holder.finish()
        try await holder.finished()
    }

    @Test(
        "Of the operations that require exclusive access, one works at a time, on queues, in compounds and started by hand"
    )
    func oneAtATime() async throws {
        let database = ExclusiveAccess("database")
        let atWork = Shared((now: 0, most: 0))
        let work = { @Sendable (name: String) -> ScriptedOperation in
            let operation = ScriptedOperation(name) { operation in
                atWork.change { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                elsewhere {
                    atWork.change { $0.now -= 1 }
                    operation.finish()
                }
            }
            operation.require(database)
            return operation
        }
        let (queue, narrow) = (OperationQueue(), OperationQueue())
        narrow.maxConcurrentOperationCount = 2
        let compound = CompoundOperation(operations: (0..<10).map { work("child \($0)") })
        let byHand = (0..<10).map { work("by hand \($0)") }
        let onQueues = (0..<20).map { work("on a queue \($0)") }
        for (number, operation) in onQueues.enumerated() {
            (number.isMultiple(of: 2) ? queue : narrow).addOperation(operation)
        }
        compound.start()
        for operation in byHand { operation.start() }
        for operation in [compound] + byHand + onQueues { try await operation.finished() }
        #expect(atWork.value.most == 1 && database.waitingCount == 0)
    }

    @Test("A resource is released when `isFinished` is true, and that of a composite after its children")
    func releasedAfterTheEnd() async throws {
        let database = ExclusiveAccess("database")
        let (child, next) = (log.held("child"), log.held("next"))
        let compound = CompoundOperation(operations: [child])
        for operation in [compound, next] { operation.require(database) }
        compound.asyncCompletionBlock = { [log] _ in log.add("completion, \(database.waitingCount) waiting") }
        compound.start()
        await log.begun("child")
        next.start()
        compound.cancel()
        #expect(database.waitingCount == 1)
        next.addStartHandler(.last) { _ in }
        child.finish()
        await log.begun("next")
        #expect(compound.isFinished && log.events == ["child", "completion, 1 waiting", "next"])
        next.finish()
    }

    @Test("Operations with a higher priority come first, and those with the same one in the order of their requests")
    func order() async throws {
        let database = ExclusiveAccess("database")
        let first = log.held("first", database)
        first.start()
        let operations = (0..<6).map { number in
            let operation = ScriptedOperation("\(number)") { [log] operation in
                log.add("\(number)")
                operation.finish()
            }
            operation.require(database)
            operation.queuePriority = number.isMultiple(of: 3) ? .high : .normal
            return operation
        }
        for operation in operations { operation.start() }
        first.finish()
        for operation in operations { try await operation.finished() }
        #expect(log.events == ["first", "0", "3", "1", "2", "4", "5"])
    }

    @Test("More operations than may wait end with an error that names the resource") func tooManyWaiting() async {
        let database = ExclusiveAccess("database", maximumWaiting: 1)
        let operations = ["0", "1", "2"].map { log.held($0, database) }
        for operation in operations { operation.start() }
        #expect(
            operations[2].error as? ResourceError
                == .tooManyWaiting(operation: "2", resource: "database", maximum: 1))
        #expect(operations[2].isFinished && !operations[1].isFinished)
        operations[1].cancel()
        let another = log.held("another", database)
        another.start()
        #expect(!another.isFinished)
        operations[0].finish()
        await log.begun("another")
        another.finish()
    }

    // MARK: - Limited waits

    @Test("A wait that takes too long ends the operation, with an error that names all, by its clock") func within()
        async
    {
        let clock = ManualClock()
        let (database, disk) = (ExclusiveAccess("database"), ExclusiveAccess("disk"))
        let (holder, operation) = (log.held("import", database), log.held("export"))
        holder.start()
        operation.clock = clock
        operation.require(disk, within: .seconds(9))
        operation.require(database, within: .seconds(7))
        operation.require(database, within: .seconds(5))
        operation.start()
        await clock.pass(.seconds(5))
        await #expect(
            throws: ResourceError.timedOut(
                operation: "export", resource: "database", duration: .seconds(5), holders: ["import"])
        ) { try await operation.finished() }
        #expect(log.events == ["import"] && database.waitingCount == 0 && disk.waitingCount == 0)
        await clock.expectNoSleepers()
        holder.finish()
    }

    @Test("A grant in time ends the time of the wait, and without a time to wait there is none") func inTime() async {
        let clock = ManualClock()
        let database = ExclusiveAccess("database")
        let (holder, operation, impatient) = (
            log.held("holder", database), log.held("operation"), log.held("impatient")
        )
        operation.clock = clock
        operation.require(database, within: .seconds(5))
        impatient.require(database, within: .zero)
        holder.start()
        operation.start()
        impatient.start()
        #expect(
            impatient.error as? ResourceError
                == .timedOut(operation: "impatient", resource: "database", duration: .zero, holders: ["holder"]))
        await clock.sleepers()
        holder.finish()
        await log.begun("operation")
        await clock.expectNoSleepers()
        clock.advance(by: .seconds(60))
        operation.finish()
        #expect(operation.error == nil)
        let patient = log.held("free")
        patient.require(database, within: .zero)
        patient.start()
        #expect(log.events.last == "free")
        patient.finish()
    }

    @Test("No operation is said to hold a permit that was used") func permits() {
        let api = RateLimit("api", 1, per: .seconds(10), clock: ManualClock())
        let (first, second) = (log.held("first", api), log.held("second"))
        first.start()
        second.require(api, within: .zero)
        second.start()
        #expect(
            second.error as? ResourceError
                == .timedOut(operation: "second", resource: "api", duration: .zero, holders: []))
        first.finish()
    }

    @Test("The time of a timeout begins when the resources were granted, and runs while they are held")
    func timeout() async {
        let clock = ManualClock()
        let database = ExclusiveAccess("database")
        let holder = log.held("holder", database)
        let operation = ScriptedOperation("operation", main: { [log] _ in log.add("operation") }) {
            $0.finish(withError: CancellationError())
        }
        operation.require(database)
        operation.clock = clock
        operation.timeout = .seconds(5)
        holder.start()
        operation.start()
        #expect(clock.deadlines.isEmpty)
        holder.finish()
        await log.begun("operation")
        await clock.pass(.seconds(5))
        await #expect(throws: OperationTimeoutError.self) { try await operation.finished() }
        let next = log.held("next", database)
        next.start()
        await log.begun("next")
        next.finish()
    }

    // MARK: - Misuse

    @Test("A requirement after the start has no effect") func late() async {
        await #expect(processExitsWith: .success) {
            let reports = Shared<[String]>([])
            OperationDiagnostics.handler = { report in reports.change { $0.append("\(report)") } }
            let database = ExclusiveAccess("database")
            let operation = ScriptedOperation.idle("work")
            operation.start()
            operation.require(database, within: .zero)
            operation.require(CircuitBreaker("service"))
            operation.finish()
            MisuseReporter.shared.waitForReports()
            let texts = reports.value
            precondition(texts.count == 2, "\(texts)")
            precondition(texts[0].contains("“work”"), texts[0])
            precondition(texts[0].contains("was given the requirement “database”."), texts[0])
            precondition(texts[1].contains("was given the requirement “service”."), texts[1])
        }
    }

    private static let senseless: [(@Sendable () -> Void, String)] = [
        ({ _ = ConcurrencyLimit("host", 0) }, "host"),
        ({ _ = RateLimit("host", -1, per: .seconds(1)) }, "host"),
        ({ _ = RateLimit("host", 1, per: .zero) }, "host"),
        ({ _ = ExclusiveAccess("host", maximumWaiting: -1) }, "host"),
        ({ _ = CircuitBreaker("host", failureRatio: .nan) }, "host"),
        ({ _ = RetryBudget(fraction: -0.1) }, "fraction"),
        ({ _ = RetryBudget(fraction: .nan) }, "fraction"),
        ({ _ = RetryBudget(minimumRetries: -1) }, "retries"),
        ({ _ = RetryBudget(per: .zero) }, "window"),
    ]

    @Test("A limit or a budget that makes no sense traps, and says so", arguments: 0..<9) func traps(index: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [index] in
            ResourceTests.senseless[index].0()
        }
        #if DEBUG
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("OperationKit: ") && text.contains(Self.senseless[index].1), "\(text)")
        #endif
    }

    @Test("What an operation waits for is described by the kind of the resource") func titles() {
        #expect(ExclusiveAccess("a").title == "exclusive access to “a”")
        #expect(ConcurrencyLimit("a", 1).title == "the place of “a”")
        #expect(ConcurrencyLimit("a", 2).title == "one of 2 places of “a”")
        #expect(RateLimit("a", 2, per: .seconds(1)).title == "a permit of “a”")
    }
}
