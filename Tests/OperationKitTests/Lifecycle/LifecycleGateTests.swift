import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What becomes of a life between its start and `main()`.
@Suite("Life cycle: gates") struct LifecycleGateTests {
    private func passing(_ ending: Lifecycle.Ending) -> Lifecycle {
        var lifecycle = Lifecycle(ending: ending)
        #expect(lifecycle.isPending && !lifecycle.isWorking)
        _ = lifecycle.started()
        #expect(!lifecycle.isPending && !lifecycle.isWorking)
        #expect(lifecycle.becameExecuting() == .passGates)
        return lifecycle
    }

    private func waiting(_ ending: Lifecycle.Ending) -> Lifecycle {
        var lifecycle = passing(ending)
        #expect(lifecycle.gateClosed() == nil)
        #expect(lifecycle.isWaiting && !lifecycle.isPassingGates)
        return lifecycle
    }

    @Test(
        "An operation is executing while it passes gates, and its work starts after that",
        arguments: Lifecycle.Ending.allCases)
    func passed(ending: Lifecycle.Ending) {
        var lifecycle = passing(ending)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && lifecycle.isPassingGates)
        #expect(lifecycle.gateClosed() == nil)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && lifecycle.isWaiting)
        #expect(lifecycle.gateOpened() == true)
        #expect(lifecycle.isPassingGates && !lifecycle.isWaiting)
        #expect(lifecycle.gatesPassed() == .runMain)
        #expect(lifecycle.isWorking && lifecycle.isExecuting && !lifecycle.isPassingGates)
    }

    @Test("A leaf that is given an outcome while it passes gates ends with it, and skips its work")
    func leafWithOutcome() {
        for var lifecycle in [passing(.immediately), waiting(.immediately)] {
            let wasWaiting = lifecycle.isWaiting
            #expect(lifecycle.finished(with: .success(())).action == .deliver)
            #expect(!lifecycle.isWorking && !lifecycle.isPassingGates)
            #expect(lifecycle.gateOpened() == false)
            lifecycle.ended()
            if !wasWaiting { #expect(lifecycle.gatesPassed() == nil) }
        }
    }

    @Test("A composite that is given an outcome while it passes gates cancels its children and ends after them")
    func compositeWithOutcome() {
        var lifecycle = passing(.afterChildren)
        // The thread that passes the gates may be inside code that adds children.
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .cancelChildren)
        #expect(!lifecycle.isWorking && !lifecycle.isPassingGates)
        #expect(lifecycle.gatesPassed() == .drain)
        #expect(lifecycle.drained(with: .success(())) == .deliver)
        #expect(text(lifecycle.outcome?.error) == "first")
        lifecycle = waiting(.afterChildren)
        #expect(lifecycle.finished(with: .failure(TestError.first)).action == .drain)
        #expect(lifecycle.gateOpened() == false)
    }

    @Test("A leaf that is cancelled while it waits ends immediately, with neither `main()` nor `didCancel()`")
    func cancelledLeaf() {
        var leaf = waiting(.immediately)
        #expect(leaf.cancelled(reason: TestError.reason) == .cancelSuperclass)
        #expect(leaf.superclassCancelled() == [.deliver])
        #expect(text(leaf.outcome?.error) == "reason")
        #expect(leaf.gateOpened() == false)
    }

    @Test("A composite that is cancelled while it waits has its children finish")
    func cancelledComposite() {
        var composite = waiting(.afterChildren)
        #expect(composite.cancelled(reason: nil) == .cancelSuperclass)
        #expect(composite.superclassCancelled() == [.drain])
        #expect(composite.gateOpened() == false)
    }

    @Test(
        "An operation that is cancelled while a thread passes its gates is ended by that thread",
        arguments: Lifecycle.Ending.allCases)
    func cancelledMeanwhile(ending: Lifecycle.Ending) {
        for isSuspended in [false, true] {
            var lifecycle = passing(ending)
            #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
            #expect(!lifecycle.isPassingGates)
            #expect(lifecycle.superclassCancelled() == (ending == .immediately ? [] : [.cancelChildren]))
            let action = isSuspended ? lifecycle.gateClosed() : lifecycle.gatesPassed()
            #expect(action == (ending == .immediately ? .deliver : .drain))
        }
    }

    @Test("The end of an operation that goes on while it is being cancelled is held back")
    func resumedWhileMarking() {
        var lifecycle = waiting(.immediately)
        #expect(lifecycle.cancelled(reason: nil) == .cancelSuperclass)
        #expect(lifecycle.gateOpened() == true)
        #expect(!lifecycle.isPassingGates)
        #expect(lifecycle.gatesPassed() == nil)
        #expect(lifecycle.outcome == nil)
        #expect(lifecycle.superclassCancelled() == [.deliver])
    }

    @Test("An operation that is cancelled while it starts passes no gate", arguments: Lifecycle.Ending.allCases)
    func cancelledBefore(ending: Lifecycle.Ending) {
        var lifecycle = Lifecycle.after([.started, .cancelled, .marked], ending)
        #expect(lifecycle.becameExecuting() == (ending == .immediately ? .deliver : .drain))
    }

    @Test("A composite that is given an outcome instead of starting its children ends after them")
    func childrenNotStarted() {
        var lifecycle = Lifecycle.after([.started, .becameExecuting, .gatesPassed, .failed], .afterChildren)
        #expect(lifecycle.mainSkipped() == .drain)
        lifecycle = Lifecycle.after([.started, .becameExecuting, .gatesPassed, .failed], .immediately)
        #expect(lifecycle.mainSkipped() == nil)
    }
}
