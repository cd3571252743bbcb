import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What may happen to a task that waits for the end of an operation, in every order.
@Suite("Task waiters", .hangGuard) struct TaskWaiterTests {
    private enum Event: CaseIterable { case registered, cancelled, finished }

    /// Every order of what happens to one wait. A cancellation is optional, and so is the end of the operation.
    private static let orders: [[Event]] = {
        var orders: [[Event]] = []
        func extend(_ order: [Event]) {
            if order.contains(.registered) { orders.append(order) }
            for event in Event.allCases where !order.contains(event) { extend(order + [event]) }
        }
        extend([])
        return orders
    }()

    @Test("In every order of events a continuation is resumed once, by the first event that may do it")
    func everyOrder() async {
        for order in Self.orders {
            let (operation, waiter) = (AsyncOperation(), TaskWaiter())
            // A cancellation only counts while the operation is not finished.
            let decisive = order.first { $0 != .registered }
            let isFinished = await withCheckedContinuation { continuation in
                for event in order {
                    switch event {
                    case .registered: operation.resume(continuation, by: waiter)
                    case .cancelled: operation.cancelWait(waiter)
                    case .finished: operation.start()
                    }
                }
                #expect(operation.isAwaited == (decisive == nil), "\(order)")
                if decisive == nil { operation.start() }
            }
            #expect(isFinished == (decisive != .cancelled), "\(order)")
            #expect(!operation.isAwaited, "\(order)")
        }
    }

    @Test("A task that waits goes on after all others were told, whichever came first")
    func order() {
        let (waiter, other) = (TaskWaiter(), FinishObserver(AsyncOperation()) {})
        for added in [[waiter, other], [other, waiter]] as [[any FinishObserving]] {
            var observers = FinishObservers()
            for observer in added { observers.add(observer) }
            #expect(observers.removeAll().map { $0 === waiter } == [false, true])
        }
        other.end()
    }
}
