import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Items as children", .hangGuard) struct CollectionChildrenTests {
    private final class Items: ParallelItemOperation {
        func performOperation(onItem item: Int, completion: @escaping @Sendable ((any Error)?) -> Void) {
            completion(nil)
        }
    }

    @Test("A run over a collection has no operations as its children, before, during and after it") func noOperations()
        async throws
    {
        let run = Items().makeOperation(on: [1, 2, 3])
        let child = AsyncBlockOperation { $0() }
        func expectNone() throws {
            let children = try #require(run.children)
            children.detach()
            children.childWasCancelled(child)
            #expect(children.operation === run)
            #expect(children.removeAll().isEmpty && children.operations(atMost: 10)?.isEmpty == true)
            #expect(children.snapshot(atMost: 10) == nil && children.childProgressed(child, to: 1) == nil)
            #expect(children.recordDependencies(of: run) == nil && children.recordedDependencies(of: run) == nil)
            #expect(children.weightedUnits == nil && children.progressDescription == nil)
        }
        try expectNone()
        run.start()
        try await run.finished()
        try expectNone()
        #expect(!child.isCancelled)
    }
}
