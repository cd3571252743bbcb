import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Composites that hold what is needed inside them, and what says so.
@Suite("Cycles of resources", .hangGuard) struct ResourceCycleTests {
    private let log = EventLog()
    private let database = ExclusiveAccess("database")
    private let disk = ExclusiveAccess("disk")

    private func held(_ name: String, _ resources: OperationResource...) -> ScriptedOperation {
        let operation = ScriptedOperation(name, main: { [log] _ in log.add(name) }) {
            $0.finish(withError: CancellationError())
        }
        for resource in resources { operation.require(resource) }
        return operation
    }

    private func begun(_ name: String) async {
        await eventually("\(name) has not begun: \(log.events)") { log.events.contains(name) }
    }

    private func expectCycle(_ operation: AsyncOperation, _ waits: [ResourceWait]) async throws {
        try await operation.waitForFinish()
        #expect(operation.error as? ResourceError == .cycle(operation: operation.displayName, waits: waits))
        #expect(log.count(of: operation.displayName) == 0)
    }

    @Test("A child that needs what a compound around it has ends with an error that names both, at any depth")
    func child() async throws {
        let child = held("child", database)
        let inner = CompoundOperation(operations: [child])
        let outer = CompoundOperation(operations: [inner])
        outer.name = "outer"
        outer.require(database)
        outer.start()
        try await expectCycle(
            child, [ResourceWait(operation: "child", resource: "database", blocker: "outer")])
        try await outer.waitForFinish()
        #expect(outer.error is CompoundOperationError && database.waitingCount == 0)
    }

    @Test("Of two compounds whose children need each other's resources, the second child ends with an error about all")
    func twoCompounds() async throws {
        let (left, right) = (held("left child", disk), held("right child", database))
        let compounds = [CompoundOperation(operations: [left]), CompoundOperation(operations: [right])]
        for (compound, name, resource) in [(compounds[0], "left", database), (compounds[1], "right", disk)] {
            compound.name = name
            compound.require(resource)
            compound.isSuspended = true
            compound.start()
        }
        compounds[0].isSuspended = false
        await eventually("the left child does not wait") { disk.waitingCount == 1 }
        compounds[1].isSuspended = false
        try await expectCycle(
            right,
            [
                ResourceWait(operation: "right child", resource: "database", blocker: "left"),
                ResourceWait(operation: "left child", resource: "disk", blocker: "right"),
            ])
        await begun("left child")
        #expect(compounds[1].isFinished)
        left.finish()
        try await compounds[0].finished()
    }

    @Test("What is run in place of a failed operation is inside the operation that recovers") func recovery()
        async throws
    {
        let cached = Step<Void, Int>("cached") { step, _ in step.finish(with: 1) }
        cached.require(database)
        let request = Step<Void, Int>("request") { step, _ in step.finish(withError: TestError.first) }
        let recovering = request.recoverRun { _ in cached }
        recovering.name = "recovering"
        recovering.require(database)
        recovering.start()
        try await recovering.waitForFinish()
        #expect(
            cached.error as? ResourceError
                == .cycle(
                    operation: "cached",
                    waits: [ResourceWait(operation: "cached", resource: "database", blocker: "recovering")]))
    }

    @Test("Children of composites of every kind are inside them", arguments: 0..<5) func composites(index: Int)
        async throws
    {
        let step = Step<Void, Int>("step") { step, _ in step.finish(with: 1) }
        step.require(database)
        let composite: AsyncOperation =
            switch index {
            case 0: MacroOperation(step)
            case 1: [step].gathered()
            case 2: step.map { $0 + 1 }
            case 3: Waterfall<Void, Void>().thenRun { step }
            default: CompoundOperation(operations: [step])
            }
        composite.require(database)
        composite.start()
        try await composite.waitForFinish()
        guard case .cycle = step.error as? ResourceError else {
            Issue.record("\(String(describing: step.error))")
            return
        }
    }

    @Test("Where resources have several places, the description says that the wait has no end") func deadlock()
        async throws
    {
        let host = ConcurrencyLimit("host", 2)
        let children = [held("0", host), held("1", host)]
        let compounds = children.map { child in
            let compound = CompoundOperation(operations: [child])
            compound.require(host)
            return compound
        }
        compounds[0].isSuspended = true
        for compound in compounds { compound.start() }
        // The request is counted first, and then the operation knows of it.
        await eventually("no child waits") { children[1].debugDescription.contains("waiting for") }
        #expect(!children[1].debugDescription.contains("never"))
        compounds[0].isSuspended = false
        await eventually("“1”: \(children[1].debugDescription)") {
            children[1].debugDescription.hasPrefix(
                "“1”: waiting for one of 2 places of “host”, which can never be granted")
        }
        compounds[0].cancel()
        await begun("1")
        children[1].finish()
        for compound in compounds { try await compound.waitForFinish() }
        #expect(compounds[1].error == nil)
    }

    @Test("A child comes before an operation that waits for what the compound around it has") func childComesFirst()
        async throws
    {
        let host = ConcurrencyLimit("host", 4)
        let load = held("load", host)
        let sync = CompoundOperation(operations: [load])
        sync.require(database)
        sync.isSuspended = true
        sync.start()
        let export = held("export", database, host)
        export.start()
        #expect(host.waitingCount == 1)
        sync.isSuspended = false
        await begun("load")
        #expect(log.events == ["load"])
        load.finish()
        try await sync.finished()
        await begun("export")
        export.finish()
        try await export.finished()
    }

    @Test("One that waits in a compound goes on when an operation with a higher priority waits for the compound")
    func childGoesOn() async throws {
        let (host, file) = (ConcurrencyLimit("host", 1), ExclusiveAccess("file"))
        let (holder, copy, load) = (held("holder", file), held("copy", host, file), held("load", host))
        holder.start()
        let sync = CompoundOperation(operations: [load])
        sync.require(database)
        sync.start()
        await begun("load")
        load.finish()
        try await sync.finished()

        let (next, around) = (held("next", host), ExclusiveAccess("around"))
        let compound = CompoundOperation(operations: [next])
        compound.require(around)
        compound.isSuspended = true
        compound.start()
        copy.start()
        compound.isSuspended = false
        await eventually("nothing waits") { host.waitingCount == 2 }
        let urgent = held("urgent", around)
        urgent.queuePriority = .high
        urgent.start()
        await begun("next")
        next.finish()
        await begun("urgent")
        for operation in [urgent, holder] { operation.finish() }
        await begun("copy")
        copy.finish()
    }

    @Test("A description says what is waited for, and which operation has it") func descriptions() async {
        let rate = RateLimit("api", 1, per: .seconds(1), clock: ManualClock())
        let (first, second) = (held("import", database, rate), held("export", database, disk))
        first.start()
        second.start()
        #expect(
            second.debugDescription.hasPrefix("“export”: waiting for exclusive access to “database”, held by “import”"))
        let third = held("clean", disk)
        third.start()
        #expect(third.debugDescription.hasPrefix("“clean”: waiting for exclusive access to “disk”, after “export”"))
        let fourth = held("fetch", rate)
        fourth.start()
        #expect(fourth.debugDescription.hasPrefix("“fetch”: waiting for a permit of “api”"))
        for operation in [fourth, third, second, first] { operation.finish() }
    }
}
