import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Prerequisites that are shared, or misused", .hangGuard) struct SharedPrerequisiteTests {
    /// A condition that needs what a closure makes.
    private struct Needs: OperationCondition {
        let id: (any Hashable & Sendable)?
        /// What its name waits for.
        var isNamed: Gate?
        let log: EventLog
        let make: @Sendable (AsyncOperation) -> Operation?

        /// A new identifier, which no other test shares.
        static func newID() -> UUID { UUID() }

        init(
            id: (any Hashable & Sendable)? = nil, _ log: EventLog,
            make: @escaping @Sendable (AsyncOperation) -> Operation?
        ) {
            self.id = id
            self.log = log
            self.make = make
        }

        var name: String {
            isNamed?.pass()
            return "signed in"
        }

        var sharingID: AnyHashable? { id.map { AnyHashable($0) } }

        func prerequisite(for operation: AsyncOperation) -> Operation? {
            log.add("ask")
            return make(operation)
        }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
            log.add("evaluate")
            return .satisfied
        }
    }

    private let log = EventLog()
    private let gate = Gate()

    private func work(_ conditions: any OperationCondition...) -> ScriptedOperation {
        let operation = ScriptedOperation("work") { [log] operation in
            log.add("work")
            operation.finish()
        }
        for condition in conditions { operation.addCondition(condition) }
        return operation
    }

    /// A login that ends when the gate is opened, and not earlier.
    @Sendable private func login() -> ScriptedOperation {
        ScriptedOperation("login") { [log, gate] operation in
            log.add("login")
            Task {
                await gate.opened()
                operation.finish()
            }
        }
    }

    private func becomesWaiting(_ operation: AsyncOperation) async {
        await eventually("does not wait") {
            RunningPrerequisites.shared.prerequisite(awaitedBy: ObjectIdentifier(operation)) != nil
        }
    }

    @Test("A condition is asked for its prerequisite once in each run, however many operations share it")
    func askedOnce() async throws {
        for _ in 0..<20 {
            let (log, id) = (EventLog(), Needs.newID())
            let condition = Needs(id: id, log) { _ in
                var random = SplitMix64(seed: 1)
                random.spinRandomly(upTo: 100_000)
                return ScriptedOperation("login") { operation in
                    log.add("login")
                    operation.finish()
                }
            }
            let operations = (0..<20).map { _ in work(condition) }
            for operation in operations { operation.start() }
            for operation in operations { try await operation.finished() }
            #expect(log.count(of: "ask") == log.count(of: "login") && log.count(of: "evaluate") == 20)
        }
    }

    @Test(
        "Two runs with the same identifier are never there at the same time: one that is being cancelled is waited for"
    )
    func neverTwo() async throws {
        let condition = Needs(id: Needs.newID(), log) { [login, log] _ in
            let login = login()
            login.asyncCompletionBlock = { _ in log.add("logged in") }
            return login
        }
        let (first, second) = (work(condition), work(condition))
        first.start()
        await becomesWaiting(first)
        let login = RunningPrerequisites.shared.prerequisite(awaitedBy: ObjectIdentifier(first))
        await eventually("not begun") { log.count(of: "login") == 1 }
        first.cancel()
        await eventually("not cancelled") { login?.isCancelled == true }
        second.start()
        await becomesWaiting(second)
        #expect(log.events == ["ask", "login"])
        gate.open()
        try await second.finished()
        #expect(log.events == ["ask", "login", "logged in", "ask", "login", "logged in", "evaluate", "work"])
    }

    @Test("An operation that is cancelled while it waits for a run of others is released before that ends")
    func cancelledWaiter() async throws {
        let leaks = LeakTracker()
        let condition = Needs(id: Needs.newID(), log) { [login] _ in login() }
        let other = work(condition)
        other.start()
        await becomesWaiting(other)
        do {
            let operation = leaks.track(work(condition))
            operation.start()
            await becomesWaiting(operation)
            operation.cancel()
        }
        await leaks.expectAllReleased()
        #expect(log.count(of: "evaluate") == 0)
        gate.open()
        try await other.finished()
        #expect(log.count(of: "login") == 1 && log.count(of: "evaluate") == 1)
    }

    @Test(
        "Nothing runs for an operation that is cancelled while its condition is asked, nor is that evaluated",
        arguments: [false, true])
    func cancelledWhileAsked(isShared: Bool) async {
        let leaks = LeakTracker()
        do {
            let operation = leaks.track(
                work(
                    Needs(id: isShared ? Needs.newID() : nil, log) { [login] operation in
                        operation.cancel()
                        return login()
                    }))
            operation.start()
            try? await operation.finished()
            #expect(operation.isCancelled)
        }
        await leaks.expectAllReleased()
        #expect(log.events == ["ask"])
    }

    @Test(
        "Nothing runs for an operation that is cancelled while the thread that starts it tells for what it waits",
        arguments: [false, true])
    func cancelledBeforeItWaits(isShared: Bool) async throws {
        let cancelled = Gate()
        // Observers are told its name, so the thread that starts the operation waits for the gate.
        var condition = Needs(id: isShared ? Needs.newID() : nil, log) { [login] operation in
            operation.cancel()
            cancelled.open()
            return login()
        }
        let isNamed = Gate()
        condition.isNamed = isNamed
        let operation = work(condition)
        operation.addObserver(EventListener())
        elsewhere { operation.start() }
        await cancelled.opened()
        for _ in 0..<100 { await Task.detached {}.value }
        isNamed.open()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
        #expect(log.events == ["ask"])
    }

    @Test("If the operation that was asked is cancelled, what it answered runs for the others")
    func askerCancelled() async throws {
        let (asked, answer) = (Gate(), Gate())
        let condition = Needs(id: Needs.newID(), log) { [login] _ in
            asked.open()
            answer.pass()
            return login()
        }
        let (first, second) = (work(condition), work(condition))
        first.start()
        await asked.opened()
        second.start()
        first.cancel()
        answer.open()
        gate.open()
        try await second.finished()
        #expect(log.count(of: "evaluate") == 1 && log.count(of: "work") == 1)
    }

    @Test("An identifier that does not equal itself shares nothing") func unequalIdentifier() async {
        let operation = work(Needs(id: Double.nan, log) { [login] _ in login() })
        operation.start()
        await becomesWaiting(operation)
        let login = RunningPrerequisites.shared.prerequisite(awaitedBy: ObjectIdentifier(operation))
        operation.cancel()
        await eventually("not cancelled") { login?.isCancelled == true }
        gate.open()
    }

    @Test("An operation that waits for the prerequisite of its condition says so") func description() async throws {
        for id in [nil, Needs.newID()] {
            let operation = work(Needs(id: id, log) { [login] _ in login() })
            operation.start()
            await becomesWaiting(operation)
            #expect(operation.debugDescription.hasPrefix("“work”: running “login” for its condition “signed in”"))
            operation.cancel()
        }
        gate.open()
    }

    // MARK: - Misuse

    private func expectUnusable(_ operation: AsyncOperation) async throws {
        let error = await #expect(throws: ConditionError.self) { try await operation.finished() }
        guard case .prerequisiteFailed("work", "signed in", "login", let cause) = try #require(error) else {
            return #expect(Bool(false), "\(String(describing: error))")
        }
        #expect(cause is OperationQueueError)
    }

    @Test(
        "A prerequisite that runs for another operation already is an error that names it, with the same identifier or without"
    )
    func usedTwice() async throws {
        let login = login()
        let first = work(Needs(log) { _ in login })
        first.start()
        await becomesWaiting(first)
        for id in [nil, Needs.newID()] {
            let second = work(Needs(id: id, log) { _ in login })
            second.start()
            try await expectUnusable(second)
        }
        gate.open()
        try await first.finished()
    }

    @Test("A prerequisite that is on a queue, or a child of a compound, is an error that names it") func usedElsewhere()
        async throws
    {
        let (queued, child) = (login(), login())
        let queue = OperationQueue()
        queue.isSuspended = true
        queue.addOperation(queued)
        ExecutionRecording.current.note(queue)
        let compound = CompoundOperation(operations: [child])
        for login in [queued, child] {
            let operation = work(Needs(log) { _ in login })
            operation.start()
            try await expectUnusable(operation)
        }
        queue.cancelAllOperations()
        queue.isSuspended = false
        withExtendedLifetime(compound) {}
    }

    @Test("A prerequisite that needs itself ends with an error that says so, at any depth", arguments: 0..<3)
    func waitsForItself(kind: Int) async throws {
        let (id, other) = (Needs.newID(), Needs.newID())
        let log = log
        let inner = Needs(id: id, log) { _ in ScriptedOperation("unused") }
        let outer = Needs(id: id, log) { _ in
            let login = ScriptedOperation("login")
            switch kind {
            case 0: login.addCondition(inner)
            case 1:
                login.addCondition(inner)
                let compound = CompoundOperation(operations: [login])
                compound.name = "login"
                return compound
            default:
                login.addCondition(
                    Needs(id: other, log) { _ in
                        let token = ScriptedOperation("token")
                        token.addCondition(inner)
                        return token
                    })
            }
            return login
        }
        let operation = work(outer)
        operation.start()
        let error = await #expect(throws: ConditionError.self) { try await operation.finished() }
        #expect(
            error?.localizedDescription.contains("needs “login”, which waits for it") == true,
            "\(String(describing: error?.localizedDescription))")
    }

    /// An identifier that calls a closure once when it is looked for.
    private struct TellingID: Hashable, Sendable {
        let body = Shared<(@Sendable () -> Void)?>(nil)
        let lookups = Shared(0)

        static func == (first: TellingID, second: TellingID) -> Bool { true }

        func hash(into hasher: inout Hasher) {
            lookups.change { $0 += 1 }
            body.change { $0.take() }?()
        }
    }

    @Test(
        "An operation that is cancelled when it is its turn to ask leaves that to the next one, if there is one",
        arguments: [false, true])
    func cancelledWhenAsked(hasNext: Bool) async throws {
        let (shared, id, gate) = (SharedPrerequisites(), TellingID(), Gate())
        func wait(_ name: String, ask: @escaping @Sendable () -> Operation?) async -> Task<Void, any Error> {
            let lookups = id.lookups.value
            let task = Task {
                try await shared.run(AnyHashable(id), for: ScriptedOperation.idle(name)) { [log] in
                    log.add("\(name) asks")
                    return ask()
                }
            }
            await eventually("\(name) has not come") { id.lookups.value > lookups }
            // It waits once the actor has time for others.
            await { (_: isolated SharedPrerequisites) in }(shared)
            return task
        }
        let first = await wait("first") { [log] in
            ScriptedOperation("login") { operation in
                log.add("login")
                Task {
                    await gate.opened()
                    operation.finish()
                }
            }
        }
        await eventually("no login") { log.events.contains("login") }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let second = await wait("second") { nil }
        let third = hasNext ? await wait("third") { nil } : nil
        id.body.value = { second.cancel() }
        gate.open()
        await #expect(throws: CancellationError.self) { try await second.value }
        try await third?.value
        #expect(log.events == ["first asks", "login"] + (hasNext ? ["third asks"] : []))
    }
}
