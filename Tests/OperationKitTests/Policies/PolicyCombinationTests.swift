import OperationKitTestSupport

/// A retry inside a macro inside a compound with a timeout, whose attempts require exclusive access to something.
@Suite("Policies in combination", .hangGuard) struct PolicyCombinationTests {
    private let clock = ManualClock()
    private let database = ExclusiveAccess("database")
    private let log = EventLog()

    private enum Work { case fails(times: Int), neverEnds }

    private func compound(_ work: Work) -> CompoundOperation {
        let (log, database) = (log, database)
        let policy = RetryPolicy(maximumAttempts: 3, backoff: .constant(.seconds(5)), jitter: .none)
        let save = RetryOperation<Int, Int>(policy, name: "save") { attempt in
            let insert = IOTaskOperation<Int, Int>(name: "insert") { input in
                log.add("attempt \(attempt)")
                switch work {
                case .fails(let count) where attempt <= count: throw TestError.first
                case .fails: return input + attempt
                case .neverEnds: try await cancellation()
                }
            }
            insert.require(database)
            return insert
        }
        save.clock = clock
        let macro = MacroOperation(IOBlockOperation<Int, Int> { $0 * 10 }).then(save)
        macro.input = 4
        macro.asyncCompletionBlock = { [unowned macro] _ in if let output = macro.output { log.add("saved \(output)") }
        }
        let compound = CompoundOperation(name: "import", operations: [macro])
        compound.clock = clock
        compound.timeout = .seconds(60)
        return compound
    }

    /// An operation that has the database until it is finished by hand.
    private func holder() -> AsyncOperation {
        let holder = ScriptedOperation("holder", main: { _ in })
        holder.require(database)
        holder.start()
        return holder
    }

    /// The database can be had, and nothing sleeps.
    private func expectNothingLeft() async throws {
        let next = ScriptedOperation("next")
        next.require(database)
        next.start()
        try await next.finished()
        #expect(database.waitingCount == 0)
        await clock.expectNoSleepers()
    }

    @Test("Each attempt waits for access, and the output of the last one is that of the macro")
    func success() async throws {
        let holder = holder()
        let compound = compound(.fails(times: 2))
        compound.start()
        await eventually("the attempt does not wait: \(compound.debugDescription)") {
            compound.debugDescription.contains("waiting for exclusive access to “database”, held by “holder”")
        }
        #expect(log.events.isEmpty && database.waitingCount == 1)
        holder.finish()
        for pause in 1...2 {
            await eventually("no pause") { clock.deadlines.first == .seconds(5 * pause) }
            // The access is given back during the pause.
            let other = self.holder()
            #expect(other.isExecuting)
            other.finish()
            clock.advance(by: .seconds(5))
        }
        try await compound.finished()
        #expect(log.events == ["attempt 1", "attempt 2", "attempt 3", "saved 43"])
        try await expectNothingLeft()
    }

    @Test(
        "A timeout or a cancellation ends an attempt that waits for access, one that works, and the pause between two, and leaves nothing behind",
        arguments: ["wait", "work", "pause"], [false, true])
    func ended(moment: String, isTimeout: Bool) async throws {
        let leaks = LeakTracker()
        do {
            let holder = moment == "wait" ? holder() : nil
            let compound = leaks.track(compound(moment == "work" ? .neverEnds : .fails(times: 3)))
            compound.timeout = .seconds(4)
            compound.start()
            switch moment {
            case "wait": await eventually("the attempt does not wait") { database.waitingCount == 1 }
            case "work": await eventually("the attempt does not work") { log.events == ["attempt 1"] }
            default: await eventually("no pause") { compound.debugDescription.contains("attempt 2 of 3 begins in") }
            }
            if isTimeout { clock.advance(by: .seconds(4)) } else { compound.cancel() }
            try? await compound.finished()
            let reason = "(\(text(OperationTimeoutError(operation: "import", timeout: .seconds(4))))) "
            #expect(brief(compound.error) == "import cancelled \(isTimeout ? reason : "")[]")
            #expect(database.waitingCount == 0 && log.events == (moment == "wait" ? [] : ["attempt 1"]))
            holder?.finish()
        }
        try await expectNothingLeft()
        await leaks.expectAllReleased()
    }

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
        let circuit = CircuitBreaker("service", minimumCalls: 1)
        let rate = RateLimit("rate", 1, per: .seconds(60), clock: clock)
        let log = self.log
        let recorder = EventRecorder { operation, event in
            if case .running = event.kind, operation.parentCompound == nil { log.add("running") }
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
