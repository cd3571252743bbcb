import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Prerequisites of conditions", .hangGuard) struct PrerequisiteTests {
    /// A condition that needs an operation, which ends when a gate is opened, or with an error.
    private final class SignedIn: OperationCondition {
        let name = "signed in"
        let id: String?
        let log: EventLog
        let made = Shared<[ScriptedOperation]>([])
        let asked = Shared(0)
        let gate = Gate()

        init(id: String? = nil, _ log: EventLog) {
            self.id = id
            self.log = log
        }

        var sharingID: AnyHashable? {
            asked.change { $0 += 1 }
            return id.map { AnyHashable($0) }
        }

        func prerequisite(for operation: AsyncOperation) -> Operation? {
            let login = ScriptedOperation(
                "login",
                main: { [log, gate] operation in
                    log.add("login")
                    Task {
                        await gate.opened()
                        operation.finish()
                    }
                },
                didCancel: { [log] in
                    log.add("logout")
                    $0.finish(withError: CancellationError())
                })
            // However it ends, what waits goes on.
            login.completionBlock = { [gate] in gate.open() }
            made.change { $0.append(login) }
            return login
        }

        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
            log.add("evaluate")
            return .satisfied
        }
    }

    private let log = EventLog()

    private func operation(_ condition: SignedIn) -> ScriptedOperation {
        let operation = ScriptedOperation("work") { [log] operation in
            log.add("work")
            operation.finish()
        }
        operation.addCondition(condition)
        return operation
    }

    private func logins(_ count: Int = 1) async {
        await eventually("no login") { log.count(of: "login") == count }
    }

    @Test("A prerequisite runs before the evaluation, on a queue of its own") func success() async throws {
        let condition = SignedIn(log)
        let operation = operation(condition)
        OperationQueue.serial(name: "serial").addOperation(operation)
        await logins()
        #expect(log.events == ["login"] && operation.isExecuting)
        condition.gate.open()
        try await operation.finished()
        #expect(log.events == ["login", "evaluate", "work"])
    }

    @Test("A prerequisite that fails ends the operation with an error that names all, without evaluation")
    func failure() async throws {
        let condition = SignedIn(log)
        let operation = operation(condition)
        operation.start()
        await logins()
        condition.made.value.first?.finish(withError: TestError.first)
        let error = await #expect(throws: ConditionError.self) { try await operation.finished() }
        guard case .prerequisiteFailed("work", "signed in", "login", TestError.first) = try #require(error) else {
            return #expect(Bool(false), "\(String(describing: error))")
        }
        #expect(log.events == ["login"])
    }

    @Test("A prerequisite is cancelled with the operation that waits for it") func cancelled() async {
        let condition = SignedIn(log)
        let operation = operation(condition)
        operation.start()
        await logins()
        operation.cancel()
        #expect(operation.isFinished)
        await eventually("not cancelled") { condition.made.value.first?.isFinished == true }
        #expect(log.events == ["login", "logout"])
    }

    @Test("A prerequisite that was started before is an error that names it") func startedBefore() async throws {
        struct Started: OperationCondition {
            let operation: ScriptedOperation

            func prerequisite(for operation: AsyncOperation) -> Operation? { self.operation }

            func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
        }
        let prerequisite = ScriptedOperation("login")
        prerequisite.start()
        let operation = ScriptedOperation()
        operation.addCondition(Started(operation: prerequisite))
        operation.start()
        let error = await #expect(throws: ConditionError.self) { try await operation.finished() }
        guard case .prerequisiteFailed(_, "Started", "login", let cause) = try #require(error) else {
            return #expect(Bool(false), "\(String(describing: error))")
        }
        #expect(cause is OperationQueueError)
    }

    @Test("Conditions with the same identifier share a run of their prerequisite, and later ones ask again")
    func shared() async throws {
        let condition = SignedIn(id: UUID().uuidString, log)
        let operations = (0..<10).map { _ in operation(condition) }
        for operation in operations { operation.start() }
        await logins()
        await eventually("not evaluated") { condition.asked.value >= 10 }
        condition.gate.open()
        for operation in operations { try await operation.finished() }
        // The last ones may have come after the end of the first run.
        let count = log.count(of: "login")
        #expect(count < 10 && log.count(of: "evaluate") == 10 && log.count(of: "work") == 10)
        let later = operation(condition)
        later.start()
        try await later.finished()
        #expect(log.count(of: "login") == count + 1)
    }

    @Test("A prerequisite that is shared is cancelled when the last operation that waits for it is")
    func sharedAndCancelled() async throws {
        let condition = SignedIn(id: UUID().uuidString, log)
        let (first, second) = (operation(condition), operation(condition))
        first.start()
        await logins()
        second.start()
        // The second one has joined the run: it makes no operation of its own.
        second.cancel()
        for _ in 0..<100 { await Task.yield() }
        #expect(log.count(of: "logout") == 0)
        first.cancel()
        await eventually("not cancelled") { log.count(of: "logout") == 1 }
        #expect(log.count(of: "login") == 1 && log.count(of: "work") == 0)
    }
}
