#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// How often an addition takes the lock of the children.
@Suite("Cost of an addition") struct ChildAdditionCostTests {
    private final class Counter: SchedulingProbe.Observer {
        var locks = 0
        private let queue = CompositeQueue()

        func reached(_ place: SchedulingProbe.Place) {
            if case .locking = place { locks += 1 }
        }

        func makeQueue() -> CompositeQueue { queue }

        func runWorker(_ work: @escaping @Sendable () -> Void) { work() }
    }

    /// `BlockOperation` has no lock of the library's, and the group none but that of its operation.
    private func locks(initial: Int, children: Int) throws -> Int {
        let compound = CompoundOperation(operations: (0..<initial).map { _ in BlockOperation() })
        let scheduler = ChildScheduler(limit: 1, failurePolicy: .continueAll)
        try scheduler.addInitial((0..<initial).map { _ in BlockOperation() }, to: compound)
        let counter = Counter()
        let added = (0..<children).map { _ in BlockOperation() }
        try SchedulingProbe.observed(by: counter) {
            try scheduler.add(added, weights: added.map { _ in 1 }, to: compound)
        }
        return counter.locks
    }

    @Test("An addition takes the lock of the children three times, and once more for those that were there before")
    func locks() throws {
        // For each child, that of its compound: whether it depends on the child, and what is around it.
        #expect(try locks(initial: 0, children: 1) == 3 + 2)
        #expect(try locks(initial: 0, children: 10) == 3 + 2 * 10)
        #expect(try locks(initial: 5, children: 1) == 4 + 2)
    }
}
#endif
