import OperationKitTestSupport

@testable import OperationKit

/// When Foundation calls its own `completionBlock`, of an `AsyncOperation` and of a `ThrowingBlockOperation`.
@Suite("completionBlock", .hangGuard) struct CompletionBlockTests {
    static let kinds = [ChildKind.asynchronous, .throwing]

    @Test(
        "The `completionBlock` that was set last is called, and one that was replaced or removed is released",
        arguments: kinds, Start.allCases)
    func lastIsCalled(kind: ChildKind, start: Start) async {
        for isReplaced in [true, false] {
            let (log, called, tracker) = (EventLog(), Gate(), LeakTracker())
            let operation = kind.make {}
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
        arguments: kinds, Start.allCases)
    func setAfterEnd(kind: ChildKind, start: Start) async throws {
        let (tracker, log) = (LeakTracker(), EventLog())
        let operation = try #require(kind.make {} as? AsyncOperation)
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
        let called = Gate()
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { [unowned operation] _ in operation.completionBlock = { called.open() } }
        await onThread { operation.start() }
        await called.opened()
    }

    #if DEBUG

    @Test(
        "One of two blocks is called, wherever the end overtakes the replacement, and none is kept",
        arguments: kinds, [false, true])
    func theEndOvertakesTheReplacement(kind: ChildKind, isAsync: Bool) async throws {
        for place in 0..<Interruption.bound {
            let (operation, calls) = (try #require(kind.make {} as? AsyncOperation), EventLog())
            let set: @Sendable (String) -> Void = { name in
                if isAsync {
                    operation.asyncCompletionBlock = { _ in calls.add(name) }
                } else {
                    operation.completionBlock = { calls.add(name) }
                }
            }
            set("first")
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    #expect(answersOnAnotherThread { operation.start() })
                    Self.letGlobalQueueWork()
                }
                SchedulingProbe.observed(by: interruption) { set("second") }
                return interruption.hasRun
            }
            if !isReached { break }
            await eventually("no block was called, place \(place)") { !calls.events.isEmpty }
            await onThread { Self.letGlobalQueueWork() }
            #expect(calls.events.count == 1 && operation.asyncCompletionBlock == nil, "place \(place)")
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
