import OperationKitTestSupport

@testable import OperationKit

@Suite("Failure collection") struct FailureCollectionTests {
    private let empty = FailureCollection(policy: .continueAll)

    private func failure(
        _ index: Int, _ error: any Error = TestError.first, of operation: Operation = Operation(),
        by cause: RootCause? = nil
    ) -> ChildFailure {
        ChildFailure(
            SuboperationError(name: "child \(index)", index: index, error: error), of: operation, cause: cause,
            isCancellation: error.isCancellation)
    }

    private func cause(_ operation: Operation) -> RootCause {
        RootCause(operation, error: TestError.first).inside(operation)
    }

    private func summary(_ failures: ChildFailures) -> [String] {
        failures.errors.map { "\($0.index): \($0.blockedCount)" }
    }

    @Test("An operation in the memory of a cause that is gone is another cause")
    func reusedMemory() {
        // The memory is used again sooner or later; no turn may count too many.
        for _ in 0..<1_000 {
            var failures = empty
            var first: Operation? = Operation()
            if let first { _ = failures.add(failure(0, of: first), isCancelling: false) }
            let other = Operation()
            _ = failures.add(failure(1, by: cause(other)), isCancelling: false)
            first = nil
            let second = Operation()
            _ = failures.add(failure(2, by: cause(second)), isCancelling: false)
            let taken = failures.take(ofChildren: 3)
            #expect(summary(taken) == ["0: 0", "1: 0", "2: 0"])
        }
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
            ([failure(4, by: self.cause(Operation()))], nil),
            ([failure(4, of: b.operation)], nil), ([failure(0, CancellationError())], "b"),
        ] {
            for ends in [both + more, more + both] {
                var failures = empty
                for end in ends { _ = failures.add(end, isCancelling: false) }
                #expect(failures.take(ofChildren: 5).cause?.name == expected)
            }
        }
        var none = empty
        #expect(none.take(ofChildren: 5).cause == nil)
    }
}
