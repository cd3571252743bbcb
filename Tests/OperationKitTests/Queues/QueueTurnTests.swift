import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The wait for a turn on a queue, without a thread: the continuation is a name here.
@Suite("The turn of a closure", .hangGuard) struct QueueTurnTests {
    private enum Event: CaseIterable { case awaited, turn, cancelled, ended }

    /// Every order of what happens to one wait. Only that it begins is certain.
    private static let orders: [[Event]] = {
        var orders: [[Event]] = []
        func extend(_ order: [Event]) {
            if order.contains(.awaited) { orders.append(order) }
            for event in Event.allCases where !order.contains(event) { extend(order + [event]) }
        }
        extend([])
        return orders
    }()

    @Test("In every order the continuation is resumed once, with the first decision") func everyOrder() {
        #expect(Self.orders.count == 49)
        for order in Self.orders {
            var turn = QueueTurn<String>()
            var resumed: [String] = []
            var winners: [Event] = []
            for event in order {
                let decision = Self.decision(event)
                if event == .awaited {
                    if let decision = turn.awaited(by: "caller") { resumed.append(text(decision.error)) }
                } else {
                    let (isFirst, continuation) = turn.decided(decision)
                    if isFirst { winners.append(event) }
                    if continuation == "caller" { resumed.append(text(decision.error)) }
                }
            }
            let decisive = order.first { $0 != .awaited }.map { [$0] } ?? []
            #expect(winners == decisive, "\(order)")
            #expect(resumed == decisive.map { text(Self.decision($0).error) }, "\(order)")
        }
    }

    private static func decision(_ event: Event) -> QueueTurn<String>.Decision {
        switch event {
        case .awaited, .turn: .success(())
        case .cancelled: .failure(CancellationError())
        case .ended: .failure(TestError.first)
        }
    }
}
