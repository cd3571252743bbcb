import OperationKitTestSupport
import OperationKitTimelines

/// Small programs, of each of which `.ci/walks` lists the source files that it passes through: what an engineer reads to know
/// what happens there.
@Suite("Walks", .serialized, .hangGuard) struct WalkTests {
    /// Starts an operation, and suspends until it has ended.
    private func run(_ operation: AsyncOperation) async {
        operation.start()
        await eventually("does not end") { operation.isFinished }
        #expect(operation.error == nil)
    }

    @Test("Walk: a life on a queue") func life() async {
        let leaf = ScriptedOperation()
        let queue = OperationQueue()
        queue.addOperation(leaf)
        await eventually("does not end") { leaf.isFinished }
    }

    @Test("Walk: a child's whole life") func child() async {
        await run(CompoundOperation(operations: [ScriptedOperation()]))
    }

    /// Two children at work, of which the first one may end.
    private func children(endsFirst: Bool) async {
        let working = [Gate(), Gate()]
        let children = working.map { gate in ScriptedOperation { _ in gate.open() } }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: 2)
        compound.start()
        for gate in working { await gate.opened() }
        if endsFirst { children[0].finish() }
        // Nothing else is looked at. The process that is measured ends here.
        if ProcessInfo.processInfo.environment["WALK"] != nil { exit(0) }
        for child in children { child.finish() }
        await eventually("does not end") { compound.isFinished }
    }

    @Test("Walk: before a child's end") func beforeEnd() async { await children(endsFirst: false) }

    @Test("Walk: a child's end") func end() async { await children(endsFirst: true) }

    @Test("Walk: an item") func item() async { _ = await Strategy.sequentialItems.make { $1(nil) }.run(on: [1]) }

    @Test("Walk: a condition, a resource and a retry in a compound") func policies() async {
        let load = RetryOperation(RetryPolicy(maximumAttempts: 2, backoff: .none)) { attempt in
            AsyncBlockOperation { finish in finish(attempt == 1 ? CocoaError(.fileReadUnknown) : nil) }
        }
        load.addCondition(name: "online") { _ in .satisfied }
        load.require(ExclusiveAccess("database"))
        await run(CompoundOperation(operations: [load]))
    }

    @Test("Walk: before an event") func beforeEvent() async { await run(ScriptedOperation()) }

    @Test("Walk: an event to the SVG") func drawing() async {
        let recorder = OperationTimelineRecorder()
        let leaf = ScriptedOperation()
        leaf.addObserver(recorder)
        await run(leaf)
        #expect(recorder.timeline.svg().contains("<svg"))
    }
}
