import Foundation
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

    private func failure(
        _ index: Int, _ error: any Error = TestError.first, of operation: Operation = Operation(),
        cause: Operation? = nil
    ) -> ChildFailure {
        failure(index, error, of: operation, by: cause.map { RootCause($0, error: TestError.first).inside($0) })
    }

    private func failure(
        _ index: Int, _ error: any Error = TestError.first, of operation: Operation = Operation(),
        by cause: RootCause?
    ) -> ChildFailure {
        ChildFailure(
            SuboperationError(name: "child \(index)", index: index, error: error), of: operation, cause: cause,
            isCancellation: error.isCancellation)
    }

    private func summary(_ failures: ChildFailures) -> [String] {
        failures.errors.map { "\($0.index): \($0.blockedCount)" }
    }

    @Test("The failures come in the order of the children, and know how many there were")
    func sorted() {
        var failures = make(.continueAll)
        for index in [2, 0, 1] {
            let cancelsOthers = failures.add(failure(index), isCancelling: false)
            #expect(!cancelsOthers)
        }
        let taken = failures.take(ofChildren: 5).failures
        #expect(taken.errors.map(\.index) == [0, 1, 2])
        #expect(taken.errors.allSatisfy { $0.siblingCount == 5 })
        let more = failures.take(ofChildren: 5).failures
        #expect(more.errors.isEmpty)
    }

    @Test("Where cancellations count, the failures come in the order in which they happened")
    func unsorted() {
        var failures = make(.continueAll, countsCancellations: true)
        for index in [2, 0, 1] { _ = failures.add(failure(index), isCancelling: false) }
        let taken = failures.take(ofChildren: 3).failures
        #expect(taken.errors.map(\.index) == [2, 0, 1])
    }

    @Test("The first failure cancels the others, where the policy says so")
    func policy() {
        var failures = make(.cancelRemaining)
        let cancelsOthers = failures.add(failure(0), isCancelling: false)
        #expect(cancelsOthers)
        let cancelsOthers2 = failures.add(failure(1), isCancelling: true)
        #expect(!cancelsOthers2)
        let taken = failures.take(ofChildren: 2).failures
        #expect(taken.errors.count == 2)
    }

    @Test("A cancellation that follows from that of all children is no failure")
    func cancellations() {
        var none = make(.cancelRemaining)
        for error in [CancellationError(), CompoundOperationError.cancelled(name: "", errors: [])] as [any Error] {
            let cancelsOthers = none.add(failure(0, error), isCancelling: false)
            #expect(!cancelsOthers)
        }
        let takenOfNone = none.take(ofChildren: 2).failures
        #expect(takenOfNone.errors.isEmpty)
        var failures = make(.cancelRemaining, countsCancellations: true)
        let cancelsOthers = failures.add(failure(0, CancellationError()), isCancelling: true)
        #expect(!cancelsOthers)
        let cancelsOthers2 = failures.add(failure(1, CancellationError()), isCancelling: false)
        #expect(cancelsOthers2)
        let taken = failures.take(ofChildren: 2).failures
        #expect(taken.errors.map(\.index) == [1])
    }

    @Test("Children that did not run are counted with their cause, whether it reports its failure before or after them")
    func blocked() {
        let (a, b) = (Operation(), Operation())
        for isFirst in [false, true] {
            var failures = make(.continueAll)
            if isFirst { _ = failures.add(failure(4, of: a), isCancelling: false) }
            for index in [3, 1, 2] { _ = failures.add(failure(index, cause: a), isCancelling: false) }
            _ = failures.add(failure(5, cause: b), isCancelling: false)
            if !isFirst { _ = failures.add(failure(4, of: a), isCancelling: false) }
            _ = failures.add(failure(0, of: b), isCancelling: false)
            let (taken, discarded) = failures.take(ofChildren: 6)
            #expect(summary(taken) == ["0: 1", "4: 3"])
            #expect(discarded.count == 3, "What is not reported is released by the caller")
        }
    }

    @Test("A cause that reports no failure is reported by the first of the children that did not run")
    func elsewhere() {
        let outside = Operation()
        var failures = make(.cancelRemaining)
        let cancelsOthers = failures.add(failure(3, cause: outside), isCancelling: false)
        #expect(cancelsOthers)
        for index in [1, 2] { _ = failures.add(failure(index, cause: outside), isCancelling: true) }
        let taken = failures.take(ofChildren: 4).failures
        #expect(summary(taken) == ["1: 2"])
        #expect(taken.errors.first?.siblingCount == 4)
    }

    @Test("A child that did not run because of a cancellation is no failure")
    func blockedByCancellation() {
        let cause = Operation()
        var failures = make(.cancelRemaining)
        let error = DependencyError.dependencyFailed(operation: "b", dependency: "a", error: CancellationError())
        let cancelsOthers = failures.add(failure(1, error, cause: cause), isCancelling: false)
        #expect(!cancelsOthers)
        let taken = failures.take(ofChildren: 2).failures
        #expect(taken.errors.isEmpty)
    }

    @Test("An operation in the memory of a cause that is gone is another cause")
    func reusedMemory() {
        // The memory is used again sooner or later; no turn may count too many.
        for _ in 0..<1_000 {
            var failures = make(.continueAll)
            var first: Operation? = Operation()
            if let first { _ = failures.add(failure(0, of: first), isCancelling: false) }
            let other = Operation()
            _ = failures.add(failure(1, cause: other), isCancelling: false)
            first = nil
            let second = Operation()
            _ = failures.add(failure(2, cause: second), isCancelling: false)
            let taken = failures.take(ofChildren: 3).failures
            #expect(summary(taken) == ["0: 0", "1: 0", "2: 0"])
        }
    }

    @Test("Where each failure counts for itself, a cause makes no difference")
    func chain() {
        let cause = Operation()
        var failures = make(.cancelRemaining, countsCancellations: true)
        for index in [2, 1] { _ = failures.add(failure(index, cause: cause), isCancelling: index == 1) }
        let taken = failures.take(ofChildren: 3).failures
        #expect(summary(taken) == ["2: 0", "1: 0"])
    }

    @Test("Only if no child failed by itself, and all causes are outside, the cause of the first child is passed on")
    func passedOn() {
        func cause(_ name: String) -> RootCause {
            let operation = Operation()
            operation.name = name
            return RootCause(operation, error: TestError.second)
        }
        let (a, b) = (cause("a"), cause("b"))
        let both = [failure(2, by: a), failure(1, by: b), failure(3, by: b)]
        for (more, expected) in [
            ([], "b"), ([failure(0, by: a)], "a"), ([failure(0)], nil),
            ([failure(4, cause: Operation())], nil),
            ([failure(4, of: b.operation)], nil), ([failure(0, CancellationError())], "b"),
        ] {
            for ends in [both + more, more + both] {
                var failures = make(.continueAll)
                for end in ends { _ = failures.add(end, isCancelling: false) }
                #expect(failures.take(ofChildren: 5).failures.cause?.name == expected)
            }
        }
        var none = make(.continueAll)
        #expect(none.take(ofChildren: 5).failures.cause == nil)
    }

    @Test("No more than one cause outside is held, and none once a child has failed by itself")
    func heldCauses() {
        final class Reference { weak var operation: Operation? }
        var failures = make(.continueAll)
        func block(_ index: Int) -> Reference {
            let (reference, operation) = (Reference(), Operation())
            reference.operation = operation
            let cause = RootCause(operation, error: TestError.first)
            _ = failures.add(failure(index, by: cause), isCancelling: false)
            return reference
        }
        let (second, third, first) = (block(2), block(3), block(1))
        _ = failures.takeDiscarded()
        #expect(first.operation != nil && second.operation == nil && third.operation == nil)
        _ = failures.add(failure(4), isCancelling: false)
        _ = failures.takeDiscarded()
        let fourth = block(0)
        #expect(first.operation == nil && fourth.operation == nil)
        #expect(summary(failures.take(ofChildren: 5).failures) == ["0: 0", "1: 0", "2: 0", "3: 0", "4: 0"])
    }
}
