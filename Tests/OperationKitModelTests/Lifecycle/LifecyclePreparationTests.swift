import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What the life cycle says when the work has to be prepared, and something happens meanwhile.
@Suite("Life cycle: preparations") struct LifecyclePreparationTests {
    private func executing(_ ending: Lifecycle.Ending) -> Lifecycle {
        var lifecycle = Lifecycle(ending: ending)
        #expect(lifecycle.isPending && !lifecycle.isWorking)
        _ = lifecycle.started()
        #expect(!lifecycle.isPending && !lifecycle.isWorking)
        _ = lifecycle.becameExecuting()
        return lifecycle
    }

    @Test("The work of an operation may start once it executes, and not before", arguments: Lifecycle.Ending.allCases)
    func prepared(ending: Lifecycle.Ending) {
        #expect(executing(ending).isWorking)
    }

    @Test("A leaf that is given an outcome while it is prepared skips its work") func leafWithOutcome() {
        var lifecycle = executing(.immediately)
        #expect(lifecycle.finished(with: .success(())).action == .deliver)
        #expect(!lifecycle.isWorking && lifecycle.mainSkipped() == nil)
        lifecycle.ended()
        #expect(lifecycle.mainSkipped() == nil)
    }

    @Test("A composite that is given an outcome while it is prepared cancels its children and ends after them")
    func compositeWithOutcome() {
        var lifecycle = executing(.afterChildren)
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .cancelChildren)
        #expect(!lifecycle.isWorking && lifecycle.mainSkipped() == .drain)
        #expect(lifecycle.drained(with: .success(())) == .deliver)
        #expect(text(lifecycle.outcome?.error) == "first")
    }

    @Test("Work that is cancelled while it is prepared starts, and `didCancel()` follows") func cancelledMeanwhile() {
        var lifecycle = executing(.immediately)
        #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
        #expect(lifecycle.superclassCancelled().isEmpty && lifecycle.isWorking)
        #expect(lifecycle.mainReturned() == .callDidCancel)
    }
}
