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

    @Test func withoutAReasonTheOutcomeOfACancelledLifeIsCancellationError() {
        var lifecycle = cancelledLife(reason: nil)
        #expect(lifecycle.started() == .deliver)
        #expect(text(lifecycle.outcome?.error) == "cancelled")
    }

    @Test func theReasonTakesThePlaceOfCancellationError() {
        var lifecycle = cancelledLife(reason: .reason)
        #expect(lifecycle.started() == .deliver)
        #expect(text(lifecycle.outcome?.error) == "reason")
        #expect(text(lifecycle.cancellationReason) == "reason")
    }

    @Test func theReasonTakesThePlaceOfACancellationErrorThatTheWorkReports() {
        var lifecycle = Lifecycle.after([.started, .becameExecuting, .mainReturned], .immediately)
        #expect(lifecycle.cancelled(reason: TestError.reason) == .cancelSuperclass)
        #expect(lifecycle.superclassCancelled() == [.callDidCancel])
        #expect(lifecycle.finished(with: .failure(CancellationError())).isAccepted)
        #expect(text(lifecycle.outcome?.error) == "reason")
    }

    @Test func aReasonLeavesAnyOtherOutcomeAlone() {
        var lifecycle = cancelledLife(reason: .reason)
        _ = lifecycle.finished(with: .failure(TestError.first))
        _ = lifecycle.started()
        #expect(text(lifecycle.outcome?.error) == "first")
    }

    @Test func onlyTheFirstCancellationCounts() {
        var lifecycle = cancelledLife(reason: nil)
        #expect(lifecycle.cancelled(reason: TestError.reason) == nil)
        #expect(lifecycle.cancellationReason == nil)
        lifecycle = cancelledLife(reason: .reason)
        #expect(lifecycle.cancelled(reason: TestError.second) == nil)
        #expect(text(lifecycle.cancellationReason) == "reason")
    }
}
