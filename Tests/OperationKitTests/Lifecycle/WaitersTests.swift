import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Those who wait for the end, without a thread: the continuations are names here.
@Suite("Waiters", .hangGuard) struct WaitersTests {
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

    @Test("The events of one wait have eleven orders") func numberOfOrders() {
        #expect(Self.orders.count == 11)
    }

    @Test("In every order of events a continuation is resumed once, by the first event that may do it")
    func everyOrder() {
        for order in Self.orders {
            var waiters = Waiters<String>()
            let id = WaiterID()
            var isFinished = false
            var wakeups: [Wakeup] = []
            for event in order {
                switch event {
                case .registered:
                    if let answer = waiters.registered("a", as: id, isFinished: isFinished) { wakeups.append(answer) }
                case .cancelled:
                    if waiters.cancelled(id, isFinished: isFinished) != nil { wakeups.append(.cancelled) }
                case .finished:
                    isFinished = true
                    wakeups += waiters.finished().map { _ in .finished }
                }
            }
            // A cancellation only counts while the operation is not finished.
            let decisive = order.first { $0 != .registered }
            let expected: [Wakeup] =
                switch decisive {
                case nil: []
                case .finished?: [.finished]
                default: [.cancelled]
                }
            #expect(wakeups == expected, "\(order)")
            #expect(waiters.isEmpty == !expected.isEmpty, "\(order)")
        }
    }

    @Test("Every waiter is resumed once, by its cancellation or by the end") func manyWaiters() {
        var waiters = Waiters<Int>()
        let ids = (0..<100).map { _ in WaiterID() }
        for (number, id) in ids.enumerated() { #expect(waiters.registered(number, as: id, isFinished: false) == nil) }
        for number in stride(from: 0, to: 100, by: 3) {
            #expect(waiters.cancelled(ids[number], isFinished: false) == number)
        }
        #expect(waiters.finished().sorted() == (0..<100).filter { $0 % 3 != 0 })
        #expect(waiters.finished().isEmpty)
        #expect(waiters.isEmpty)
    }

    @Test("The cancellation of one waiter leaves the others waiting") func oneCancellation() {
        var waiters = Waiters<String>()
        let (a, b) = (WaiterID(), WaiterID())
        _ = waiters.registered("a", as: a, isFinished: false)
        #expect(waiters.cancelled(b, isFinished: false) == nil)
        #expect(waiters.registered("b", as: b, isFinished: false) == .cancelled)
        #expect(waiters.finished() == ["a"])
    }
}
