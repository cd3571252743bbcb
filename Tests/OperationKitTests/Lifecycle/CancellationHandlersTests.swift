import OperationKitTestSupport

@testable import OperationKit

/// The handlers that work has registered, without a thread and an operation.
@Suite("Cancellation handlers", .hangGuard) struct CancellationHandlersTests {
    private enum Event: CaseIterable { case first, second, cancelled, ended }

    /// Every order of two registrations, a cancellation and the end, of which each may be missing.
    private static let orders: [[Event]] = {
        var orders: [[Event]] = []
        func extend(_ order: [Event]) {
            orders.append(order)
            for event in Event.allCases where !order.contains(event) { extend(order + [event]) }
        }
        extend([])
        return orders
    }()

    /// Whether a handler is called: if it is registered, and the work cancelled, before the end.
    private static func isCalled(_ handler: Event, in order: [Event]) -> Bool {
        let lived = order.prefix { $0 != .ended }
        return lived.contains(handler) && lived.contains(.cancelled)
    }

    @Test("In every order, each handler that is due is called once, in the order of registration")
    func everyOrder() {
        #expect(Self.orders.count == 65)
        for order in Self.orders {
            var handlers = CancellationHandlers()
            let called = EventLog()
            for event in order {
                switch event {
                case .first, .second:
                    let handler: CancellationHandlers.Handler = { called.add("\(event)") }
                    if handlers.added(handler) { handler() }
                case .cancelled:
                    while let handler = handlers.cancelled() { handler() }
                case .ended:
                    _ = handlers.ended()
                    #expect(handlers.ended().isEmpty)
                }
            }
            let expected = order.filter { [.first, .second].contains($0) && Self.isCalled($0, in: order) }
            #expect(called.events == expected.map { "\($0)" }, "\(order)")
        }
    }
}
