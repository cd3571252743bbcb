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

    @Test(arguments: Lifecycle.Ending.allCases) func preparedTheWorkMayBegin(ending: Lifecycle.Ending) {
        #expect(executing(ending).isWorking)
    }

    @Test func aLeafThatWasGivenAnOutcomeSkipsItsWork() {
        var lifecycle = executing(.immediately)
        #expect(lifecycle.finished(with: .success(())).action == .deliver)
        #expect(!lifecycle.isWorking && lifecycle.mainSkipped() == nil)
        lifecycle.ended()
        #expect(lifecycle.mainSkipped() == nil)
    }

    @Test func aCompositeThatWasGivenAnOutcomeLetsItsChildrenEnd() {
        var lifecycle = executing(.afterChildren)
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .cancelChildren)
        #expect(!lifecycle.isWorking && lifecycle.mainSkipped() == .drain)
        #expect(lifecycle.drained(with: .success(())) == .deliver)
        #expect(text(lifecycle.outcome?.error) == "first")
    }

    @Test func cancelledMeanwhileTheWorkBeginsAndItsHookFollows() {
        var lifecycle = executing(.immediately)
        #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
        #expect(lifecycle.superclassCancelled().isEmpty && lifecycle.isWorking)
        #expect(lifecycle.mainReturned() == .callDidCancel)
    }
}
