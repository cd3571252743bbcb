import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Which operation has which slot.
@Suite("Child table") struct ChildTableTests {
    @Test("A child is found by its slot and by its operation until it is removed", arguments: [true, false])
    func lookup(isAsync: Bool) {
        let child = isAsync ? AsyncOperation() : Operation()
        var table = ChildTable()
        let slot = table.insert(child, weight: 3, phase: .added)
        #expect(table.slot(of: child) == slot)
        #expect(table.child(in: slot)?.operation === child)
        #expect(table.isPresent(ChildReference(slot: slot, operation: child)))
        #expect(!table.isPresent(ChildReference(slot: slot, operation: Operation())))
        #expect(table.operations == [child])
        let removed = table.remove(slot)
        #expect(removed === child)
        #expect(table.slot(of: child) == nil && table.child(in: slot) == nil && table.operations.isEmpty)
        #expect(table.added == 1 && table.remaining == 0)
    }

    @Test("An operation that is a child elsewhere is not found")
    func slotOfAnotherComposite() {
        let child = AsyncOperation()
        var table = ChildTable()
        var other = ChildTable()
        _ = other.insert(child, weight: 1, phase: .added)
        #expect(table.slot(of: child) == nil)
        _ = table.insert(AsyncOperation(), weight: 1, phase: .added)
        #expect(table.slot(of: child) == nil)
    }

    @Test("An external dependency keeps its slot when it becomes a child")
    func adoption() {
        let child = Operation()
        var table = ChildTable()
        let slot = table.insertExternal()
        #expect(table.remaining == 0 && table.operations.isEmpty)
        table.adopt(slot, child, weight: 1, phase: .adding)
        #expect(table.slot(of: child) == slot && table.remaining == 1)
    }

    @Test("A weight is neither negative nor so large that sums could overflow")
    func weights() {
        var table = ChildTable()
        let slots = [-1, 5, .max].map { table.insert(Operation(), weight: $0, phase: .added) }
        #expect(slots.map { table.records[$0].weight } == [0, 5, 1 << 31])
    }

    @Test("Nothing is searched where nothing depends on anything")
    func noSearch() {
        var table = ChildTable()
        _ = table.insert(Operation(), weight: 1, phase: .waiting)
        let cycle = table.dependencyCycle(through: 0..<1)
        #expect(cycle == nil)
        #expect(table.searches == 0)
    }
}
