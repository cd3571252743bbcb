import OperationKitTestSupport

@testable import OperationKit

@Suite("Resources", .hangGuard) struct ResourceTests {
    private let log = EventLog()

    @Test("A resource that is required twice is waited for the shorter time, in either order") func requiredTwice() {
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
            other.add(CircuitBreaker("api"))
            other.add(ExclusiveAccess("database"), within: .seconds(9))
            #expect(other.circuitBreakers.count == 2 && other.shortest?.resource === database)
        }
    }

    @Test("A wait whose time is over just after it was granted has ended nothing") func expiredAfterGrant() throws {
        let database = ExclusiveAccess("database")
        let (holder, next) = (log.held("holder", database), log.held("next", database))
        holder.start()
        let lease = try #require(holder.withState { $0.gates?.lease } as? ResourceLease)
        #expect(ResourcePool.shared.expired(try #require(lease.requestID))?.count == nil)
        next.start()
        #expect(log.events == ["holder"])
        holder.finish()
        next.finish()
    }

    @Test("An operation says what it comes after where its resource is free") func afterAnother() async throws {
        let (database, network, clock) = (ExclusiveAccess("database"), ExclusiveAccess("network"), ManualClock())
        let (holder, both, next) = (log.held("import", network), log.held("both"), log.held("next", database))
        both.clock = clock
        both.require(database)
        both.require(network, within: .seconds(1))
        for operation in [holder, both, next] { operation.start() }
        #expect(withoutAges(next).hasSuffix("waiting for exclusive access to “database”, after “both”"))
        await clock.pass(.seconds(1))
        await #expect(throws: ResourceError.self) { try await both.finished() }
        await log.begun("next")
        for operation in [holder, next] {
            operation.finish()
            try await operation.finished()
        }
    }

    @Test("Operations come by priority, and then in the order of their requests") func order() async throws {
        let database = ExclusiveAccess("database")
        let operations = (0..<7).map { ScriptedOperation.named("\($0)", in: log, requiring: [database]) }
        for number in [3, 6] { operations[number].queuePriority = .high }
        let first = log.held("first", database)
        for operation in [first] + operations { operation.start() }
        first.finish()
        for operation in operations { try await operation.finished() }
        #expect(log.events == ["first", "3", "6", "0", "1", "2", "4", "5"])
    }

    @Test("More operations than may wait end with an error that names the resource") func tooManyWaiting() async {
        let database = ExclusiveAccess("database", maximumWaiting: 1)
        let operations = ["0", "1", "2"].map { log.held($0, database) }
        for operation in operations { operation.start() }
        let error = ResourceError.tooManyWaiting(operation: "2", resource: "database", maximum: 1)
        #expect(operations[2].error as? ResourceError == error && !operations[1].isFinished)
        operations[1].cancel()
        let another = log.held("another", database)
        another.start()
        #expect(!another.isFinished)
        operations[0].finish()
        await log.begun("another")
        another.finish()
    }

    @Test("A wait that takes too long by its clock ends with an error that names all") func within() async {
        let clock = ManualClock()
        let (database, disk) = (ExclusiveAccess("database"), ExclusiveAccess("disk"))
        let (holder, operation) = (log.held("import", disk, database), log.held("export"))
        holder.start()
        operation.clock = clock
        operation.require(disk, within: .seconds(9))
        operation.require(database, within: .seconds(7))
        operation.require(database, within: .seconds(5))
        operation.start()
        await clock.pass(.seconds(5))
        let error = ResourceError.timedOut(
            operation: "export", resource: "database", duration: .seconds(5), holders: ["import"])
        await #expect(throws: error) { try await operation.finished() }
        #expect(log.events == ["import"] && database.waitingCount == 0 && disk.waitingCount == 0)
        await clock.expectNoSleepers()
        holder.finish()
    }

    @Test("A grant in time ends the time of the wait, and without a time to wait there is none") func inTime() async {
        let (database, clock) = (ExclusiveAccess("database"), ManualClock())
        /// Starts one that does not wait.
        func impatient(_ resource: OperationResource) -> ScriptedOperation {
            let operation = log.held("impatient")
            operation.require(resource, within: .zero)
            operation.start()
            return operation
        }
        func tooLate(_ resource: String, holders: [String]) -> ResourceError {
            .timedOut(operation: "impatient", resource: resource, duration: .zero, holders: holders)
        }
        let (holder, operation) = (log.held("holder", database), log.held("operation"))
        operation.clock = clock
        operation.require(database, within: .seconds(5))
        for operation in [holder, operation] { operation.start() }
        #expect(impatient(database).error as? ResourceError == tooLate("database", holders: ["holder"]))
        await clock.sleepers()
        holder.finish()
        await log.begun("operation")
        await clock.expectNoSleepers()
        clock.advance(by: .seconds(60))
        operation.finish()
        #expect(operation.error == nil)
        impatient(database).finish()
        #expect(log.events.last == "impatient")
        // A permit that was used is held by no operation.
        let api = RateLimit("api", 1, per: .seconds(10), clock: clock)
        let first = log.held("first", api)
        first.start()
        #expect(impatient(api).error as? ResourceError == tooLate("api", holders: []))
        first.finish()
    }

    @Test("A policy that an operation is given after its start has no effect, and is reported") func late() async {
        await #expect(processExitsWith: .success) {
            let reports = misuseReports { "\($0)" }
            let database = ExclusiveAccess("database")
            let operation = ScriptedOperation.idle("work")
            operation.start()
            operation.require(database, within: .zero)
            operation.require(CircuitBreaker("service"))
            operation.addCondition(name: "online") { _ in .failed(TestError.first) }
            operation.timeout = .seconds(5)
            operation.clock = ManualClock()
            precondition(operation.timeout == nil && operation.clock is ContinuousClock)
            operation.finish()
            precondition(operation.error == nil)
            MisuseReporter.shared.waitForReports()
            let policies = [
                "requirement “database”", "requirement “service”", "condition “online”", "timeout", "clock",
            ]
            precondition(reports.value.count == policies.count, "\(reports.value)")
            for (text, policy) in zip(reports.value, policies) {
                let article = policy.contains("“") ? "the" : "a"
                precondition(text.contains("“work” had started when it was given \(article) \(policy)."), text)
            }
        }
    }

    private static let senseless: [(@Sendable () -> Void, String)] = [
        ({ _ = ConcurrencyLimit("host", 0) }, "host"),
        ({ _ = RateLimit("host", -1, per: .seconds(1)) }, "host"),
        ({ _ = RateLimit("host", 1, per: .zero) }, "host"),
        ({ _ = ExclusiveAccess("host", maximumWaiting: -1) }, "host"),
        ({ _ = KeyedConcurrencyLimit("host", 0) }, "host"),
        ({ _ = KeyedConcurrencyLimit("host", 1, maximumWaiting: -1) }, "host"),
        ({ _ = KeyedExclusiveAccess("host", maximumWaiting: -1) }, "host"),
        ({ _ = CircuitBreaker("host", failureRatio: .nan) }, "host"),
        ({ _ = RetryBudget(fraction: -0.1) }, "fraction"),
        ({ _ = RetryBudget(fraction: .infinity) }, "fraction"),
        ({ _ = RetryBudget(minimumRetries: -1) }, "retries"),
        ({ _ = RetryBudget(per: .zero) }, "window"),
        ({ _ = CompoundOperation(maxConcurrentOperationCount: -2) }, "-2"),
        ({ CompoundOperation().maxConcurrentOperationCount = -7 }, "-7"),
        ({ _ = WorkflowOperation(maxConcurrentOperationCount: -2) { _ in } }, "-2"),
        ({ WorkflowOperation { _ in }.maxConcurrentOperationCount = -2 }, "-2"),
        ({ _ = [TaskOperation { 1 }].gathered(maxConcurrentOperationCount: -2) }, "-2"),
        // Nothing could raise it.
        ({ _ = [TaskOperation { 1 }].gathered(maxConcurrentOperationCount: 0) }, "cannot be 0"),
        ({ [compound = CompoundOperation()] in try? compound.addOperation(compound) }, "it would contain itself"),
        (
            {
                let inner = CompoundOperation()
                let outer = CompoundOperation(operations: [CompoundOperation(operations: [inner])])
                try? inner.addOperation(outer)
            }, "it would contain itself"
        ),
    ]

    @Test("A limit or a budget that makes no sense, or a compound inside itself, traps, and says so", arguments: 0..<20)
    func traps(index: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [index] in
            ResourceTests.senseless[index].0()
        }
        #if DEBUG
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("OperationKit: ") && text.contains(Self.senseless[index].1), "\(text)")
        #endif
    }
}

@Suite("Resources with keys", .hangGuard) struct KeyedResourceTests {
    @Test("Operations with one key share a resource, those with another one or none have theirs") func keys() {
        let hosts = KeyedConcurrencyLimit("host", 4, maximumWaiting: 7)
        let first = hosts["a"]
        #expect(first === hosts[Optional("a")] && first !== hosts["b"])
        #expect((first.name, first.limit, first.maximumWaiting) == ("host a", 4, 7))
        let none = hosts[URL(string: "file")?.host]
        #expect(none === hosts[String?.none] && none !== first && none.name == "host")
        let files = KeyedExclusiveAccess("file", maximumWaiting: 1)
        let file = files[1]
        #expect(file === files[1] && file !== files[2])
        let key = ScriptedOperation()
        #expect(files[key] === files[key as Operation])
        #expect(file.name == "file 1" && file.maximumWaiting == 1)
    }

    @Test("A resource exists while an operation uses it, and nothing is left of its key then") func lifetime() async {
        let (files, log) = (KeyedExclusiveAccess("file"), EventLog())
        let (holder, waiter) = (log.held("holder", files["a"]), log.held("waiter", files["a"]))
        for operation in [holder, waiter] { operation.start() }
        #expect(files.resources.entries.withLock(\.count) == 1 && files["a"].waitingCount == 1)
        holder.finish()
        await log.begun("waiter")
        #expect(files.resources.entries.withLock(\.count) == 1)
        waiter.finish()
        await eventually("the resource is kept") { files.resources.entries.withLock(\.count) == 0 }
        for key in 0..<TestExtent.choose(1_000, long: 1_000_000) { _ = files[key] }
        _ = files[Double.nan]
        #expect(files.resources.entries.withLock(\.count) == 0)
    }

    @Test("An object keeps its key while the one before it ends, and is freed with no lock") func successors() async {
        let objects = KeyedObjects<Released>()
        let tell = Shared<@Sendable () -> Void>({})
        // What tells of the end of the first one does so again and again.
        _ = objects.object(for: 1) { released in
            tell.value = released
            return Released(released)
        }
        let (clashes, isOver) = (Shared(0), Shared(false))
        await concurrently([
            { [released = tell.value] in while !isOver.value { released() } },
            {
                for number in 0..<TestExtent.choose(10_000, long: 1_000_000) {
                    let object = objects.object(for: 1) { Released($0) }
                    if objects.object(for: 1, make: { Released($0) }) !== object { clashes.change { $0 += 1 } }
                    // Dropped at other moments of what the other thread does.
                    for _ in 0..<number % 64 { _ = clashes.value }
                }
                isOver.value = true
            },
        ])
        #expect(clashes.value == 0 && objects.entries.withLock(\.count) == 0)
    }
}
