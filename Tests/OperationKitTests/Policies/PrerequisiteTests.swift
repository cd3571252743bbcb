import OperationKitTestSupport

@testable import OperationKit

@Suite("Prerequisites of conditions", .hangGuard) struct PrerequisiteTests {
    struct Needs: OperationCondition {
        let name = "signed in"
        let log: EventLog
        let make: @Sendable () -> Operation?

        func prerequisite(for operation: AsyncOperation) -> Operation? { make() }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
            log.add("evaluate")
            return .satisfied
        }
    }

    private let database = ExclusiveAccess("database")
    private let host = ConcurrencyLimit("host", 4)
    private let log = EventLog()

    private func logged(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        .named(name, in: log, requiring: resources)
    }

    private func work(needing prerequisite: Operation) -> ScriptedOperation {
        let (work, made) = (logged("work"), UncheckedSendable(prerequisite))
        work.addCondition(Needs(log: log) { made.value })
        return work
    }

    private func endless(_ name: String) -> ScriptedOperation {
        ScriptedOperation(name, main: { [log] _ in log.add(name) }) { [log] in
            log.add("stop \(name)")
            $0.finish(withError: CancellationError())
        }
    }

    @Test("A prerequisite runs first, on its own queue, and its failure counts", arguments: [nil, TestError.first])
    func outcome(error: TestError?) async throws {
        let login = endless("login")
        let work = work(needing: login)
        OperationQueue.serial(name: "serial").addOperation(work)
        await log.begun("login")
        #expect(log.events == ["login"] && work.isExecuting)
        login.finish(withError: error)
        try await work.waitForFinish()
        #expect(log.events == (error == nil ? ["login", "evaluate", "work"] : ["login"]))
        #expect(brief(work.error) == (error == nil ? "success" : "work, signed in, login: first"))
    }

    @Test("A prerequisite that is around what needs it is an error") func aroundItsOperation() async throws {
        let whole = CompoundOperation()
        let work = work(needing: whole)
        try whole.addOperation(work)
        whole.require(database)
        await Start.byHand(work)
        #expect(work.error is ConditionError && log.events.isEmpty)
        withExtendedLifetime(whole) {}
    }

    @Test("A prerequisite that is refused is inside nothing") func refused() async throws {
        let login = logged("login", database)
        let work = work(needing: login)
        login.addDependency(work)
        let child = endless("child")
        let compound = CompoundOperation(operations: [work, child])
        compound.require(database)
        compound.start()
        try await work.waitForFinish()
        #expect(work.error is ConditionError && !login.isFinished)
        login.start()
        await eventually("it does not wait") { database.waitingCount == 1 || login.isFinished }
        child.finish()
        try await login.finished()
    }

    @Test(
        "A prerequisite that waits for what needs it, or what is around that, is an error",
        arguments: [(between: 0, isInside: false), (0, true), (1, true), (400, true)])
    func waitsForItself(between: Int, isInside: Bool) async throws {
        let login = logged("login")
        let work = work(needing: login)
        // The first one closes the cycle. From the last two, which do not run, there are very many ways, and none to the first.
        let others: [Operation] = (0..<between).map { _ in BlockOperation {} }
        others.first?.addDependency(work)
        for (index, other) in others.enumerated().dropFirst(2) { other.addDependencies(others[1..<index].suffix(2)) }
        let whole = isInside ? CompoundOperation(operations: [work] + others.prefix(1)) : work
        login.addDependencies(others.isEmpty ? [whole] : [others[between / 2], others[0], others[between - 1]])
        whole.start()
        try await whole.waitForFinish()
        #expect(brief(work.error) == "work, signed in, login: work cycle [work, login]")
        #expect(log.events.isEmpty && !login.isFinished)
    }

    @Test("A prerequisite runs that waits for an operation which waited for the other one, and was cancelled")
    func waitsForCancelled() async throws {
        let (login, between) = (logged("login"), BlockOperation {})
        let work = work(needing: login)
        between.addDependency(work)
        login.addDependency(between)
        between.cancel()
        work.start()
        await eventually("it does not run") { work.debugDescription.contains("running “login”") }
        OperationQueue().addOperation(between)
        try await work.finished()
        #expect(log.events == ["login", "evaluate", "work"])
    }

    @Test("Of two whose prerequisites wait for each other, one is refused") func waitForEachOther() async throws {
        for _ in 0..<TestExtent.choose(50, long: 2_000) {
            let logins = [logged("login"), logged("login")]
            let works = logins.map { work(needing: $0) }
            for (login, work) in zip(logins, works.reversed()) { login.addDependency(work) }
            let compound = CompoundOperation(operations: works)
            compound.start()
            try await compound.waitForFinish()
            let errors = works.map(\.error).filter { $0 is ConditionError }.map(brief)
            #expect(!errors.isEmpty && errors.allSatisfy { $0 == "work, signed in, login: work cycle [work, login]" })
        }
    }

    @Test("A prerequisite that is not run may be released before its dependencies end", arguments: [false, true])
    func notRun(isRefused: Bool) async throws {
        let leaks = LeakTracker()
        // Often, as the thread that has started the work may come late to cancelling what asks for the prerequisite.
        for _ in 0..<(isRefused ? 1 : 100) {
            let (work, source) = (logged("work"), ScriptedOperation.idle())
            let log = log
            work.addCondition(
                Needs(log: log) { [weak work] in
                    let login = leaks.track(BlockOperation { log.add("login") })
                    if let work { login.addDependency(isRefused ? work : source) }
                    if !isRefused { work?.cancel() }
                    return login
                })
            work.start()
            try? await work.finished()
            source.start()
            source.finish()
        }
        await leaks.expectAllReleased()
        #expect(log.events.isEmpty)
    }

    @Test("A prerequisite is cancelled with what needs it, and no success evaluates that", arguments: [false, true])
    func cancelled(goesOn: Bool) async {
        let leaks = LeakTracker()
        let login = goesOn ? ScriptedOperation("login") { [log] _ in log.add("login") } : endless("login")
        do {
            let token = leaks.token("condition")
            let (work, made) = (logged("work"), UncheckedSendable(login))
            work.addCondition(
                Needs(log: log) {
                    token.use()
                    return made.value
                })
            work.start()
            await log.begun("login")
            work.cancel()
            #expect(work.isFinished)
        }
        if goesOn {
            await eventually("not cancelled") { login.isCancelled }
            login.finish()
        }
        await leaks.expectAllReleased()
        await eventually("not ended") { login.isFinished }
        #expect(log.events == (goesOn ? ["login"] : ["login", "stop login"]))
    }

    @Test("A prerequisite that is used already is an error", arguments: 0..<5) func used(index: Int) async throws {
        let (login, hold, compound) = (endless("login"), ScriptedOperation(), CompoundOperation())
        let (work, other) = (work(needing: login), work(needing: login))
        switch index {
        case 0: login.start()
        case 1: try compound.addOperation(login)
        case 2, 3:
            // It runs for another operation, or waits for a third one until it can.
            if index == 3 { login.addDependency(hold) }
            other.start()
            await eventually("not taken") {
                login.surroundingOperations.contains(other) && login.isAtWork == (index == 2)
            }
        default:
            // It would wait for itself.
            work.addCondition(Needs(log: log) { [unowned work] in work })
            login.finish()
        }
        work.start()
        try await work.waitForFinish()
        guard case .prerequisiteFailed(_, _, let prerequisite, let cause)? = work.error as? ConditionError else {
            return #expect(Bool(false), "\(text(work.error))")
        }
        #expect(prerequisite == (index == 4 ? "work" : "login") && cause is OperationQueueError)
        hold.start()
        if index < 4 { login.finish() }
    }

    @Test("A prerequisite is inside what is around the operation that waits for it", arguments: [false, true])
    func order(isNested: Bool) async throws {
        let (open, child) = (Gate(), logged("save"))
        // What needs the login may be a prerequisite itself.
        let made = UncheckedSendable(isNested ? work(needing: logged("login", host)) : logged("login", host))
        child.addCondition(name: "open") { _ in
            await open.opened()
            return .satisfied
        }
        child.addCondition(Needs(log: log) { made.value })
        let sync = CompoundOperation(name: "sync", operations: [child])
        sync.require(database)
        sync.start()
        await eventually("does not execute") { child.isExecuting }
        let export = logged("export", database, host)
        export.start()
        open.open()
        try await sync.finished()
        try await export.finished()
        #expect(
            log.events.filter { $0 != "evaluate" } == (isNested ? ["login", "work"] : ["login"]) + ["save", "export"])
    }

    @Test("A prerequisite that is made while its operation is cancelled ends, too", arguments: ChildKind.allCases)
    func madeTooLate(kind: ChildKind) async {
        let (making, work, login) = (HeldWork(), logged("work"), UncheckedSendable(kind.make("login") {}))
        work.addCondition(
            Needs(log: log) {
                making()
                return login.value
            })
        work.start()
        await making.begun.opened()
        work.cancel()
        making.mayEnd.open()
        await eventually("“login” does not end") { login.value.isFinished }
        #expect(login.value.isCancelled && log.events.isEmpty)
    }

    @Test("The description of an operation says what its prerequisite waits for") func description() async throws {
        let holder = log.held("import", database)
        holder.start()
        let work = work(needing: logged("login", database))
        work.start()
        // That “login” waits is known a moment after the resource knows.
        let description =
            "running “login” for its condition “signed in”, which is waiting for exclusive access to “database”, held by “import”"
        await eventually("is \(work.debugDescription)") { work.debugDescription.hasSuffix(description) }
        holder.finish()
        try await work.finished()
    }
}
