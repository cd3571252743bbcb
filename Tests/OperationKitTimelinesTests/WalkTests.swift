import OperationKitTestSupport
import OperationKitTimelines

/// Small programs, of each of which `.ci/walks` lists the source files that it passes through: what an engineer reads to know
/// what happens there.
@Suite("Walks", .serialized, .hangGuard) struct WalkTests {
    private final class Leaf: AsyncOperation, @unchecked Sendable {
        override func main() { finish() }
    }

    @Test("Walk: a life on a queue") func life() async {
        let leaf = Leaf()
        let queue = OperationQueue()
        queue.addOperation(leaf)
        await eventually("does not end") { leaf.isFinished }
    }

    @Test("Walk: a child's whole life") func child() async {
        let compound = CompoundOperation(operations: [Leaf()])
        compound.start()
        await eventually("does not end") { compound.isFinished }
    }

    /// Ends when it is told.
    private final class Held: AsyncOperation, @unchecked Sendable {
        let working = Gate()

        override func main() { working.open() }
    }

    /// Two children at work, of which the first one may end.
    private func children(endsFirst: Bool) async {
        let children = (0..<2).map { _ in Held() }
        let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: 2)
        compound.start()
        for child in children { await child.working.opened() }
        if endsFirst { children[0].finish() }
        // Nothing else is looked at. The process that is measured ends here.
        if ProcessInfo.processInfo.environment["WALK"] != nil { exit(0) }
        for child in children { child.finish() }
        await eventually("does not end") { compound.isFinished }
    }

    @Test("Walk: before a child's end") func beforeEnd() async { await children(endsFirst: false) }

    @Test("Walk: a child's end") func end() async { await children(endsFirst: true) }

    private final class Items: SequentialItemOperation, Sendable {
        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
    }

    @Test("Walk: an item") func item() async {
        await withCheckedContinuation { over in
            Items().performOperation(on: [1]) { _ in over.resume() }
        }
    }

    @Test("Walk: a condition, a resource and a retry in a compound") func policies() async {
        let load = RetryOperation(RetryPolicy(maximumAttempts: 2, backoff: .none)) { attempt in
            AsyncBlockOperation { finish in finish(attempt == 1 ? CocoaError(.fileReadUnknown) : nil) }
        }
        load.addCondition(name: "online") { _ in .satisfied }
        load.require(ExclusiveAccess("database"))
        let compound = CompoundOperation(operations: [load])
        compound.start()
        await eventually("does not end") { compound.isFinished }
        #expect(compound.error == nil)
    }

    @Test("Walk: before an event") func beforeEvent() async {
        let leaf = Leaf()
        leaf.start()
        await eventually("does not end") { leaf.isFinished }
    }

    @Test("Walk: an event to the SVG") func drawing() async {
        let recorder = OperationTimelineRecorder()
        let leaf = Leaf()
        leaf.addObserver(recorder)
        leaf.start()
        await eventually("does not end") { leaf.isFinished }
        #expect(recorder.timeline.svg().contains("<svg"))
    }
}
