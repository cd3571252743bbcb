import OperationKitTestSupport

@testable import OperationKit

/// The body of a composite on the thread of a worker, which is to go on with the children when the body waits.
@Suite("Bodies on threads of workers", .hangGuard) struct CompositeBodyTests {
    @Test("A worker that was to run the body first is needed again when that goes on without a wait")
    func request() async {
        let body = CompositeBody()
        let child = ObjectIdentifier(body)
        await withCheckedContinuation { continuation in
            body.stay(asWorker: true)
            #expect(!body.takesWorkerRequest(), "It may compute for long.")
            #expect(body.beganWait(for: child, continuation) && body.takesWorkerRequest())
            #expect(body.childEnded(child) && !body.childEnded(child))
            #expect(!body.takesWorkerRequest() && !body.run())
        }
    }

    @Test("A child that is added just before the end of what the body is about to wait for begins")
    func addedBeforeTheEnd() async throws {
        let hasRun = Gate()
        let add = Shared<@Sendable () throws -> Void>({})
        let workflow = WorkflowOperation { flow in
            // The body goes on on the thread of this one.
            try await flow.run(ThrowingBlockOperation {})
            let id = ObjectIdentifier(hasRun)
            await withCheckedContinuation { continuation in
                #expect(flow.children.body?.beganWait(for: id, continuation) == true)
                expectNoError { try add.value() }
                flow.children.tellBody(ofEnd: id)
                block(until: hasRun)
            }
        }
        add.change {
            $0 = { [unowned workflow] in try workflow.addOperation(ThrowingBlockOperation { hasRun.open() }) }
        }
        OperationQueue().addOperation(workflow)
        try await workflow.finished()
    }
}
