#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// A child of a class that the library does not know, and that other threads change while it is started, in many orders of their
/// steps. What it overrides is never called with a lock held.
@Suite("Interleavings of stock children", .serialized, .takesTurns, .hangGuard) struct StockInterleavingTests {
    private func tryOut(
        _ title: String, limit: Int = -1, _ roles: [Role<StockSubject>], _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(
            title, samples: (30, 20), { _ in StockSubject(limit: limit) },
            [Role("start") { $0.compound.start() }] + roles, location)
    }

    @Test("A stock child that is given a dependency while it is started is started by the queue, or later")
    func aDependencyWhileItIsBegun() async {
        await tryOut("stock child, dependency", [Role("depend") { $0.stock.addDependency($0.outer) }])
        await tryOut(
            "stock child, dependency, limit 1", limit: 1, [Role("depend") { $0.stock.addDependency($0.outer) }])
    }

    @Test("A stock child that is cancelled while it is started ends once")
    func aCancellationWhileItIsBegun() async {
        await tryOut("stock child, cancel it", [Role("cancel") { $0.stock.cancel() }])
        await tryOut("stock child, cancel all", [Role("cancel") { $0.compound.cancel() }])
    }

    @Test("A compound describes itself while a child gets another name")
    func aNameWhileADescriptionIsMade() async {
        await tryOut(
            "stock child, name, description",
            [Role("name") { $0.stock.name = "stock, again" }, Role("describe") { $0.describe() }])
    }
}
#endif
