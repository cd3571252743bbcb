import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Prerequisites that require resources", .hangGuard) struct PrerequisiteResourceTests {
    /// A condition that runs an operation first.
    private struct Needs: OperationCondition {
        let name = "signed in"
        var id: UUID?
        let make: @Sendable () -> Operation?

        var sharingID: AnyHashable? { id.map { AnyHashable($0) } }

        func prerequisite(for operation: AsyncOperation) -> Operation? { make() }
        func evaluate(for operation: AsyncOperation) async throws -> ConditionResult { .satisfied }
    }

    private let database = ExclusiveAccess("database")
    private let host = ConcurrencyLimit("host", 4)
    private let log = EventLog()

    private func logged(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        .named(name, in: log, requiring: resources)
    }

    /// A compound that has the database, with a child that waits for a prerequisite, which is made once a gate is open.
    private func sync(_ gate: Gate, id: UUID? = nil, _ prerequisite: Operation) -> CompoundOperation {
        let child = logged("save")
        let made = UncheckedSendable(prerequisite)
        child.addCondition(
            ClosureCondition(name: "open") { _ in
                await gate.opened()
                return .satisfied
            })
        child.addCondition(Needs(id: id) { made.value })
        let sync = CompoundOperation(name: "sync", operations: [child])
        sync.require(database)
        return sync
    }

    @Test(
        "A prerequisite comes before those that wait for what is around the operation that waits for it",
        arguments: [false, true], [false, true])
    func order(isShared: Bool, isNested: Bool) async throws {
        let gate = Gate()
        let login = logged("login", host)
        var prerequisite = login
        if isNested {
            // What needs the login is a prerequisite itself.
            let inner = UncheckedSendable(login)
            prerequisite = logged("token")
            prerequisite.addCondition(Needs { inner.value })
        }
        let sync = sync(gate, id: isShared ? UUID() : nil, prerequisite)
        sync.start()
        await eventually("does not execute") { sync.isAtWork }
        let export = logged("export", database, host)
        export.start()
        await eventually("does not wait") { host.waitingCount == 1 }
        gate.open()
        try await sync.finished()
        try await export.finished()
        #expect(log.events == (isNested ? ["login", "token"] : ["login"]) + ["save", "export"])
    }

    @Test("A prerequisite that requires what is around the operation that waits for it is an error that names both")
    func cycle() async throws {
        let gate = Gate()
        gate.open()
        let login = logged("login", database)
        let sync = sync(gate, login)
        sync.start()
        let error = await #expect(throws: CompoundOperationError.self) { try await sync.finished() }
        #expect(log.events.isEmpty)
        #expect(
            login.error as? ResourceError
                == .cycle(
                    operation: "login", waits: [ResourceWait(operation: "login", resource: "database", blocker: "sync")]
                ))
        let text = error?.localizedDescription ?? ""
        #expect(text.contains("“login”") && text.contains("“database”") && text.contains("“sync”"), "\(text)")
    }

    @Test("The description of an operation says what its prerequisite waits for") func description() async throws {
        let holder = ScriptedOperation.idle("import")
        holder.require(database)
        holder.start()
        let login = UncheckedSendable(logged("login", database))
        let save = logged("save")
        save.addCondition(Needs { login.value })
        save.start()
        // That “login” waits is known a moment after the resource knows.
        let description =
            "“save”: running “login” for its condition “signed in”, which is waiting for exclusive access to “database”, held by “import”"
        await eventually("is \(save.debugDescription)") { save.debugDescription.hasPrefix(description) }
        holder.finish()
        try await save.finished()
    }

    @Test("The queues of prerequisites are not among those that are searched for operations") func queues() async throws
    {
        let known = KnownQueues()
        let queue = PrivateQueue()
        known.insert(queue)
        #expect(known.count == 0)
        do {
            let gone = OperationQueue()
            known.insert(gone)
            #expect(known.count == 1)
        }
        #expect(known.queue(of: BlockOperation {}) == nil && known.count == 0)
    }
}
