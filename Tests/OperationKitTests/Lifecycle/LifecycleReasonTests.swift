import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What the outcome is when an operation is cancelled with a reason, without a thread.
@Suite("Lifecycle, reasons", .hangGuard) struct LifecycleReasonTests {
    private func cancelledLife(reason: TestError?) -> Lifecycle {
        var lifecycle = Lifecycle(ending: .immediately)
        _ = lifecycle.cancelled(reason: reason)
        _ = lifecycle.superclassCancelled()
        return lifecycle
    }

    @Test("Without a reason the outcome of a life that is cancelled before its start is `CancellationError`")
    func noReason() {
        var lifecycle = cancelledLife(reason: nil)
        #expect(lifecycle.started() == .deliver)
        #expect(text(lifecycle.outcome?.error) == "cancelled")
    }

    @Test("The reason of a cancellation takes the place of `CancellationError`") func reason() {
        var lifecycle = cancelledLife(reason: .reason)
        #expect(lifecycle.started() == .deliver)
        #expect(text(lifecycle.outcome?.error) == "reason")
        #expect(text(lifecycle.cancellationReason) == "reason")
    }

    @Test("The reason takes the place of a `CancellationError` that the work reports") func reportedCancellation() {
        var lifecycle = Lifecycle.after([.started, .becameExecuting, .gatesPassed, .mainReturned], .immediately)
        #expect(lifecycle.cancelled(reason: TestError.reason) == .cancelSuperclass)
        #expect(lifecycle.superclassCancelled() == [.callDidCancel])
        #expect(lifecycle.finished(with: .failure(CancellationError())).isAccepted)
        #expect(text(lifecycle.outcome?.error) == "reason")
    }

    @Test("A reason leaves any other outcome alone") func otherOutcome() {
        var lifecycle = cancelledLife(reason: .reason)
        _ = lifecycle.finished(with: .failure(TestError.first))
        _ = lifecycle.started()
        #expect(text(lifecycle.outcome?.error) == "first")
    }

    @Test("Of several cancellations only the first counts, with or without its reason") func firstCancellation() {
        var lifecycle = cancelledLife(reason: nil)
        #expect(lifecycle.cancelled(reason: TestError.reason) == nil)
        #expect(lifecycle.cancellationReason == nil)
        lifecycle = cancelledLife(reason: .reason)
        #expect(lifecycle.cancelled(reason: TestError.second) == nil)
        #expect(text(lifecycle.cancellationReason) == "reason")
    }
}
