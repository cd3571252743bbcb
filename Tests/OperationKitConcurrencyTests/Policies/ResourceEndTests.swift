import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The ways in which an operation that requires resources can end.
@Suite("Ends of operations with resources", .hangGuard) struct ResourceEndTests {
    enum End: CaseIterable {
        case success, failure, cancellation, drop
    }

    private let leaks = LeakTracker()
    private let log = EventLog()

    private func operation(
        _ name: String, isCompound: Bool = false, _ resources: OperationResource...
    ) -> AsyncOperation {
        let work = leaks.track(
            ScriptedOperation(name, main: { [log] _ in log.add(name) }) { $0.finish(withError: CancellationError()) })
        let operation = isCompound ? leaks.track(CompoundOperation(operations: [work])) : work
        operation.name = name
        for resource in resources { operation.require(resource) }
        return operation
    }

    private func begun(_ name: String) async {
        await eventually("\(name) has not begun: \(log.events)") { log.events.contains(name) }
    }

    private func take(_ end: End, of operation: inout AsyncOperation?) {
        switch end {
        case .success: operation?.finish()
        case .failure: operation?.finish(withError: TestError.first)
        case .cancellation: operation?.cancel()
        case .drop: break
        }
        operation = nil
    }

    @Test(
        "An operation that ends at work releases what it has, however it ends", arguments: End.allCases, [false, true])
    func atWork(end: End, isCompound: Bool) async {
        // A compound that executes is kept alive by its children.
        if isCompound, end == .drop { return }
        do {
            let (database, host) = (leaks.track(ExclusiveAccess("database")), leaks.track(ConcurrencyLimit("host", 1)))
            var holder: AsyncOperation? = operation("holder", isCompound: isCompound, database, host)
            holder?.start()
            await begun("holder")
            let next = operation("next", database, host)
            next.start()
            #expect(database.waitingCount == 1)
            take(end, of: &holder)
            await begun("next")
            next.finish()
        }
        await leaks.expectAllReleased()
    }

    @Test(
        "An operation that ends while it waits does not wait any more, and runs nothing", arguments: End.allCases,
        [false, true])
    func waiting(end: End, isCompound: Bool) async {
        do {
            let database = leaks.track(ExclusiveAccess("database"))
            let holder = operation("holder", database)
            holder.start()
            var waiting: AsyncOperation? = operation("waiting", isCompound: isCompound, database)
            waiting?.start()
            let next = operation("next", database)
            next.start()
            #expect(database.waitingCount == 2)
            take(end, of: &waiting)
            await eventually("it waits") { database.waitingCount == 1 }
            holder.finish()
            await begun("next")
            next.finish()
            #expect(log.events == ["holder", "next"])
        }
        await leaks.expectAllReleased()
    }

    @Test("An operation that ends before its start requests nothing", arguments: End.allCases) func beforeTheStart(
        end: End
    ) async {
        do {
            let database = leaks.track(ExclusiveAccess("database"))
            var ended: AsyncOperation? = operation("ended", database)
            let started = ended
            take(end, of: &ended)
            if end != .drop { started?.start() }
            let next = operation("next", database)
            next.start()
            #expect(log.events == ["next"])
            next.finish()
        }
        await leaks.expectAllReleased()
    }

    @Test("An operation that is granted and cancelled before its work releases what it has") func granted() async throws
    {
        let database = ExclusiveAccess("database")
        let operation = operation("operation", database)
        let gate = HeldGate(order: .last)
        operation.addGate(gate)
        operation.start()
        #expect(gate.isAwaited)
        let next = self.operation("next", database)
        next.start()
        operation.cancel()
        await begun("next")
        next.finish()
        #expect(log.events == ["next"])
    }

    @Test("Operations that wait for each other's end are let go on without nested calls, however many wait")
    func manyWaiting() async throws {
        let count = TestExtent.choose(5_000, long: 100_000)
        let database = ExclusiveAccess("database")
        let done = Shared(0)
        let holder = operation("holder", database)
        holder.start()
        let operations = (0..<count).map { number in
            let operation = ScriptedOperation { operation in
                let turn = done.change { done in
                    defer { done += 1 }
                    return done
                }
                operation.finish(withError: turn == number ? nil : TestError.numbered(number))
            }
            operation.require(database)
            operation.start()
            return operation
        }
        #expect(database.waitingCount == count)
        holder.finish()
        for operation in operations.reversed() { try await operation.finished() }
        #expect(done.value == count)
    }
}
