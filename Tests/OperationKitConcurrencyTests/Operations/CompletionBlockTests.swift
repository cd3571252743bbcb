import OperationKitTestSupport

@testable import OperationKit

/// When Foundation calls its own `completionBlock`, of an `AsyncOperation` and of a `ThrowingBlockOperation`.
@Suite("completionBlock", .hangGuard) struct CompletionBlockTests {
    enum Kind: CaseIterable {
        case asynchronous, throwing

        func make() -> AsyncOperation {
            switch self {
            case .asynchronous: ScriptedOperation()
            case .throwing: ThrowingBlockOperation {}
            }
        }
    }

    @Test(
        "The `completionBlock` that was set last is called, and one that was replaced or removed is released",
        arguments: Kind.allCases, Start.allCases)
    func lastIsCalled(kind: Kind, start: Start) async {
        for isReplaced in [true, false] { await lastIsCalled(kind, start, isReplaced: isReplaced) }
    }

    private func lastIsCalled(_ kind: Kind, _ start: Start, isReplaced: Bool) async {
        let log = EventLog()
        let called = Gate()
        let tracker = LeakTracker()
        let operation = kind.make()
        do {
            let token = tracker.token("replaced block")
            operation.completionBlock = {
                token.use()
                log.add("first")
            }
        }
        #expect(operation.completionBlock != nil)
        let second: @Sendable () -> Void = {
            log.add("second")
            called.open()
        }
        operation.completionBlock = isReplaced ? second : nil
        #expect((operation.completionBlock != nil) == isReplaced)
        await tracker.expectAllReleased()
        await start(operation)
        if isReplaced { await called.opened() }
        #expect(log.events == (isReplaced ? ["second"] : []))
    }

    @Test("`completionBlock` is called although the queue finds the operation finished before the end is announced")
    func queueComesFirst() async {
        let (ending, dependentBegan, called) = (Gate(), Gate(), Gate())
        let operation = AsyncBlockOperation { finish in
            // Released when the operation is finished, and Foundation has not been told.
            let waits: @Sendable () -> Void = {
                ending.open()
                dependentBegan.pass()
            }
            finish.onCancel { [released = Released(waits)] in released.use() }
            Thread { finish() }.start()
            ending.pass()
        }
        operation.completionBlock = { called.open() }
        let dependent = BlockOperation { dependentBegan.open() }
        dependent.addDependency(operation)
        let queue = OperationQueue()
        queue.addOperation(dependent)
        queue.addOperation(operation)
        await called.opened()
    }

    @Test(
        "A `completionBlock` and an `asyncCompletionBlock` that are set after the end are dropped",
        arguments: Kind.allCases, Start.allCases)
    func setAfterEnd(kind: Kind, start: Start) async {
        let (tracker, log) = (LeakTracker(), EventLog())
        let operation = kind.make()
        await start(operation)
        do {
            let (token, asyncToken) = (tracker.token("block"), tracker.token("async block"))
            operation.asyncCompletionBlock = { _ in
                asyncToken.use()
                log.add("called")
            }
            #expect(operation.asyncCompletionBlock == nil && tracker.alive.contains("block"))
            operation.completionBlock = {
                token.use()
                log.add("called")
            }
        }
        #if !canImport(ObjectiveC)
        #expect(operation.completionBlock == nil)
        await tracker.expectAllReleased()
        #endif
        await eventually("it is kept") { !tracker.alive.contains("async block") }
        #expect(log.events.isEmpty)
    }

    @Test("A `completionBlock` that is set in `asyncCompletionBlock` is called")
    func setInAsyncCompletionBlock() async {
        let log = EventLog()
        let called = Gate()
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { [unowned operation] _ in
            operation.completionBlock = {
                log.add("called")
                called.open()
            }
        }
        await onThread { operation.start() }
        await called.opened()
        #expect(log.events == ["called"])
    }

    #if DEBUG
    private struct Subject: Sendable {
        let operation: Operation
        let calls = Shared<[String]>([])

        func setBlock(_ name: String) {
            operation.completionBlock = { [calls] in calls.change { $0.append(name) } }
        }
    }

    @Test(
        "One of two completion blocks is called, wherever the end overtakes the replacement", arguments: Kind.allCases)
    func theEndOvertakesTheReplacement(kind: Kind) async {
        for place in 0..<Interruption.bound {
            let subject = Subject(operation: kind.make())
            subject.setBlock("first")
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    #expect(answersOnAnotherThread { subject.operation.start() })
                    Self.letGlobalQueueWork()
                }
                SchedulingProbe.observed(by: interruption) { subject.setBlock("second") }
                return interruption.hasRun
            }
            if !isReached { break }
            await eventually("no block was called, place \(place)") { !subject.calls.value.isEmpty }
            await onThread { Self.letGlobalQueueWork() }
            #expect(subject.calls.value.count == 1, "place \(place)")
        }
    }

    /// What was handed to the global queue before has been called when this returns, on a machine that is not
    /// overloaded.
    private static func letGlobalQueueWork() {
        DispatchQueue.concurrentPerform(iterations: 100) { _ in }
        for _ in 0..<100 { DispatchQueue.global().sync {} }
        let done = DispatchGroup()
        for _ in 0..<100 { DispatchQueue.global().async(group: done) {} }
        done.wait()
    }
    #endif
}
