import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What counts as a failure, and what follows from it.
@Suite("Failure collection") struct FailureCollectionTests {
    private func make(
        _ policy: FailurePolicy, countsCancellations: Bool = false
    ) -> FailureCollection {
        FailureCollection(rules: .init(policy: policy, countsCancellations: countsCancellations))
    }

    private func failure(_ index: Int, _ error: any Error = TestError.first) -> ChildFailure {
        ChildFailure(
            SuboperationError(name: "child \(index)", index: index, error: error), isCancellation: error.isCancellation)
    }

    @Test("The failures come in the order of the children, and know how many there were")
    func sorted() {
        var failures = make(.continueAll)
        for index in [2, 0, 1] {
            let cancelsOthers = failures.add(failure(index), isCancelling: false)
            #expect(!cancelsOthers)
        }
        let taken = failures.take(ofChildren: 5)
        #expect(taken.map(\.index) == [0, 1, 2])
        #expect(taken.allSatisfy { $0.siblingCount == 5 })
        let more = failures.take(ofChildren: 5)
        #expect(more.isEmpty)
    }

    @Test("Where cancellations count, the failures come in the order in which they happened")
    func unsorted() {
        var failures = make(.continueAll, countsCancellations: true)
        for index in [2, 0, 1] { _ = failures.add(failure(index), isCancelling: false) }
        let taken = failures.take(ofChildren: 3)
        #expect(taken.map(\.index) == [2, 0, 1])
    }

    @Test("The first failure cancels the others, where the policy says so")
    func policy() {
        var failures = make(.cancelRemaining)
        let cancelsOthers = failures.add(failure(0), isCancelling: false)
        #expect(cancelsOthers)
        let cancelsOthers2 = failures.add(failure(1), isCancelling: true)
        #expect(!cancelsOthers2)
        let taken = failures.take(ofChildren: 2)
        #expect(taken.count == 2)
    }

    @Test("A cancellation that follows from that of all children is no failure")
    func cancellations() {
        var none = make(.cancelRemaining)
        for error in [CancellationError(), CompoundOperationError.cancelled(name: "", errors: [])] as [any Error] {
            let cancelsOthers = none.add(failure(0, error), isCancelling: false)
            #expect(!cancelsOthers)
        }
        let takenOfNone = none.take(ofChildren: 2)
        #expect(takenOfNone.isEmpty)
        var failures = make(.cancelRemaining, countsCancellations: true)
        let cancelsOthers = failures.add(failure(0, CancellationError()), isCancelling: true)
        #expect(!cancelsOthers)
        let cancelsOthers2 = failures.add(failure(1, CancellationError()), isCancelling: false)
        #expect(cancelsOthers2)
        let taken = failures.take(ofChildren: 2)
        #expect(taken.map(\.index) == [1])
    }
}
