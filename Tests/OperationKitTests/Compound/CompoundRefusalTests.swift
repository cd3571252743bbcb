import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Additions that are refused, while other threads go on.
@Suite("Compound: refused additions", .hangGuard) struct CompoundRefusalTests {
    /// Holds the thread that asks for its name, which the error of a refusal has to know.
    private final class Named: AsyncOperation, @unchecked Sendable {
        let isAsked = Gate()
        let mayAnswer = Gate()

        override var name: String? {
            get {
                isAsked.open()
                mayAnswer.pass()
                return "refused"
            }
            set { super.name = newValue }
        }
    }

    private func expectRefusal(_ add: () throws -> Void) {
        #expect(throws: CompoundOperationError.self, performing: add)
    }

    /// Refuses an operation because it would close a cycle, and does something while the refusal is on its way.
    private func refuse(in compound: CompoundOperation, meanwhile: @Sendable () async throws -> Void) async throws {
        let refused = Named()
        let waiting = ScriptedOperation("waiting")
        waiting.addDependency(refused)
        refused.addDependency(waiting)
        try compound.addOperation(waiting)
        async let refusal: Void = onThread {
            expectRefusal { try compound.addOperation(refused) }
        }
        await refused.isAsked.opened()
        do { try await meanwhile() } catch { Issue.record(error) }
        refused.mayAnswer.open()
        await refusal
        // Otherwise these two would hold each other.
        refused.removeDependency(waiting)
        waiting.cancel()
    }

    @Test("A refusal because of a cycle has no effect on a compound that starts at that moment")
    func theStart() async throws {
        let ran = Gate()
        let compound = CompoundOperation(operations: [
            ScriptedOperation { child in
                ran.open(); child.finish()
            }
        ])
        try await refuse(in: compound) {
            compound.start()
            await ran.opened()
        }
        try await compound.finished()
    }

    @Test("A refusal has no effect on the index of a child that is added at that moment, nor on the number of children")
    func theNumbers() async throws {
        let compound = CompoundOperation()
        try await refuse(in: compound) {
            try compound.addOperation(ThrowingBlockOperation(name: "fails") { throw TestError.first })
        }
        compound.start()
        try? await compound.finished()
        guard case .suboperationFailure(_, let errors) = compound.error as? CompoundOperationError else {
            Issue.record("\(String(describing: compound.error))")
            return
        }
        #expect(errors.map(\.name) == ["fails"])
        #expect(errors.map(\.index) == [1])
        #expect(errors.map(\.siblingCount) == [2])
    }
}
