import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What becomes of a life between its start and `main()`.
@Suite("Life cycle: preparations") struct LifecyclePreparationTests {
    private func preparing(_ ending: Lifecycle.Ending) -> Lifecycle {
        var lifecycle = Lifecycle(ending: ending)
        #expect(lifecycle.isPending && !lifecycle.isWorking)
        _ = lifecycle.started()
        #expect(!lifecycle.isPending && !lifecycle.isWorking)
        #expect(lifecycle.becameExecuting() == .prepare)
        return lifecycle
    }

    private func waiting(_ ending: Lifecycle.Ending) -> Lifecycle {
        var lifecycle = preparing(ending)
        #expect(lifecycle.preparationSuspended() == nil)
        #expect(lifecycle.isWaiting && !lifecycle.isPreparing)
        return lifecycle
    }

    @Test(
        "An operation is executing while it is prepared, and its work starts after that",
        arguments: Lifecycle.Ending.allCases)
    func prepared(ending: Lifecycle.Ending) {
        var lifecycle = preparing(ending)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && lifecycle.isPreparing)
        #expect(lifecycle.preparationSuspended() == nil)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && lifecycle.isWaiting)
        #expect(lifecycle.preparationResumed() == true)
        #expect(lifecycle.isPreparing && !lifecycle.isWaiting)
        #expect(lifecycle.prepared() == .runMain)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && !lifecycle.isPreparing)
    }

    @Test("A leaf that is given an outcome while it is prepared ends with it, and skips its work")
    func leafWithOutcome() {
        for var lifecycle in [preparing(.immediately), waiting(.immediately)] {
            let wasWaiting = lifecycle.isWaiting
            #expect(lifecycle.finished(with: .success(())).action == .deliver)
            #expect(!lifecycle.isWorking && !lifecycle.isPreparing)
            #expect(lifecycle.preparationResumed() == false)
            lifecycle.ended()
            if !wasWaiting { #expect(lifecycle.prepared() == nil) }
        }
    }

    @Test("A composite that is given an outcome while it is prepared cancels its children and ends after them")
    func compositeWithOutcome() {
        var lifecycle = preparing(.afterChildren)
        // The thread that prepares it may be inside code that adds children.
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .cancelChildren)
        #expect(!lifecycle.isWorking && !lifecycle.isPreparing)
        #expect(lifecycle.prepared() == .drain)
        #expect(lifecycle.drained(with: .success(())) == .deliver)
        #expect(text(lifecycle.outcome?.error) == "first")
        lifecycle = waiting(.afterChildren)
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .drain)
        #expect(lifecycle.preparationResumed() == false)
    }

    @Test("A leaf that is cancelled while it waits ends immediately, with neither `main()` nor `didCancel()`")
    func cancelledLeaf() {
        var leaf = waiting(.immediately)
        #expect(leaf.cancelled(reason: TestError.reason) == .cancelSuperclass)
        #expect(leaf.superclassCancelled() == [.deliver])
        #expect(text(leaf.outcome?.error) == "reason")
        #expect(leaf.preparationResumed() == false)
    }

    @Test("A composite that is cancelled while it waits has its children finish")
    func cancelledComposite() {
        var composite = waiting(.afterChildren)
        #expect(composite.cancelled(reason: nil) == .cancelSuperclass)
        #expect(composite.superclassCancelled() == [.drain])
        #expect(composite.preparationResumed() == false)
    }

    @Test(
        "An operation that is cancelled while a thread prepares it is ended by that thread",
        arguments: Lifecycle.Ending.allCases)
    func cancelledMeanwhile(ending: Lifecycle.Ending) {
        for isSuspended in [false, true] {
            var lifecycle = preparing(ending)
            #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
            #expect(!lifecycle.isPreparing)
            #expect(lifecycle.superclassCancelled() == (ending == .immediately ? [] : [.cancelChildren]))
            let action = isSuspended ? lifecycle.preparationSuspended() : lifecycle.prepared()
            #expect(action == (ending == .immediately ? .deliver : .drain))
        }
    }

    @Test("The end of an operation that goes on while it is being cancelled is held back")
    func resumedWhileMarking() {
        var lifecycle = waiting(.immediately)
        #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
        #expect(lifecycle.preparationResumed() == true)
        #expect(!lifecycle.isPreparing)
        #expect(lifecycle.prepared() == nil)
        #expect(lifecycle.outcome == nil)
        #expect(lifecycle.superclassCancelled() == [.deliver])
    }

    @Test("An operation that is cancelled while it starts is not prepared", arguments: Lifecycle.Ending.allCases)
    func cancelledBefore(ending: Lifecycle.Ending) {
        var lifecycle = Lifecycle.after([.started, .cancelled, .marked], ending)
        #expect(lifecycle.becameExecuting() == (ending == .immediately ? .deliver : .drain))
    }

    @Test("A composite that is given an outcome instead of starting its children ends after them")
    func childrenNotStarted() {
        var lifecycle = Lifecycle.after([.started, .becameExecuting, .prepared, .failed], .afterChildren)
        #expect(lifecycle.mainSkipped() == .drain)
        lifecycle = Lifecycle.after([.started, .becameExecuting, .prepared, .failed], .immediately)
        #expect(lifecycle.mainSkipped() == nil)
    }
}
