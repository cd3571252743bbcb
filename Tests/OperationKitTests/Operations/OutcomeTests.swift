import OperationKitTestSupport

/// One outcome, delivered once, before the end. Everything that is called comes in one order.
@Suite("One outcome", .hangGuard) struct OutcomeTests {
    /// How it ends, and its outcome.
    enum End: String, CaseIterable {
        case success, failure = "first"
        case cancelledBefore = "cancelled"
        case cancelledInMain = "reason"
    }

    @Test(
        "`asyncCompletionBlock` gets the outcome once, before `isFinished`, dependents and `completionBlock`",
        arguments: Start.allCases, End.allCases)
    func comesFirst(start: Start, end: End) async {
        let (log, called) = (EventLog(), Gate())
        let operation = ScriptedOperation(
            main: {
                if end == .cancelledInMain { return $0.cancel(withError: TestError.reason) }
                $0.finish(withError: end == .failure ? TestError.first : nil)
            },
            didCancel: { $0.finish(withError: CancellationError()) })
        operation.asyncCompletionBlock = { [unowned operation] error in
            log.add("\(text(error)) \(text(operation.error)), finished \(operation.isFinished)")
        }
        operation.completionBlock = {
            log.add("completionBlock, finished \(operation.isFinished)")
            called.open()
        }
        let dependent = BlockOperation { log.add("dependent") }
        dependent.addDependency(operation)
        OperationQueue().addOperation(dependent)
        await start(operation) { if end == .cancelledBefore { operation.cancel() } }
        await onThread { dependent.waitUntilFinished() }
        await called.opened()
        #expect(log.events.first == "\(end.rawValue) \(end.rawValue), finished false")
        #expect(Set(log.events.dropFirst()) == ["dependent", "completionBlock, finished true"])
        #expect(log.events.count == 3)
        #expect(operation.isCancelled == [.cancelledBefore, .cancelledInMain].contains(end))
    }

    @Test("Dependents wait while the outcome is being delivered") func dependentsWait() async throws {
        let log = EventLog()
        let (delivering, mayGoOn) = (Gate(), Gate())
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { _ in
            delivering.open()
            mayGoOn.pass()
            log.add("delivered")
        }
        let dependent = ScriptedOperation(main: {
            log.add("dependent")
            $0.finish()
        })
        dependent.addDependency(operation)
        let queue = OperationQueue()
        queue.addOperation(operation)
        queue.addOperation(dependent)
        await delivering.opened()
        #expect(!operation.isFinished && operation.isExecuting && !dependent.isReady)
        // What another thread finishes meanwhile comes too late.
        #expect(await onThread { operation.finish(withError: TestError.second) } == false)
        mayGoOn.open()
        try await dependent.finished()
        #expect(log.events == ["delivered", "dependent"])
    }

    @Test("`asyncCompletionBlock` is called on the thread that ends the operation") func threadOfEnd() async {
        let operation = ScriptedOperation.idle()
        let thread = Shared<Thread?>(nil)
        operation.asyncCompletionBlock = { _ in thread.value = Thread.current }
        await onThread { operation.start() }
        let isTheSame = await onThread {
            operation.finish()
            return thread.value === Thread.current
        }
        #expect(isTheSame)
        // A thread holds what it runs.
        thread.value = nil
    }

    @Test("`asyncCompletionBlock` can be replaced and removed until the end, and set after an outcome before the start")
    func replacedAndRemoved() async {
        let log = EventLog()
        let (replaced, removed, ended) = (ScriptedOperation.idle(), ScriptedOperation.idle(), ScriptedOperation())
        for operation in [replaced, removed] {
            operation.asyncCompletionBlock = { _ in log.add("first") }
            operation.start()
        }
        replaced.asyncCompletionBlock = { log.add("second, \(text($0))") }
        removed.asyncCompletionBlock = nil
        replaced.finish()
        removed.finish()
        ended.finish(withError: TestError.first)
        ended.asyncCompletionBlock = { log.add("third, \(text($0))") }
        await onThread { ended.start() }
        #expect(log.events == ["second, success", "third, first"])
        #expect(replaced.asyncCompletionBlock == nil)
    }

    @Test("An `asyncCompletionBlock` that is set in the call of another one is dropped") func setInItself() async {
        let tracker = LeakTracker()
        let log = EventLog()
        let operation = ScriptedOperation()
        operation.asyncCompletionBlock = { [unowned operation] _ in
            log.add("first")
            let token = tracker.token("inner block")
            operation.asyncCompletionBlock = { _ in
                token.use()
                log.add("second")
            }
            log.add("set \(operation.asyncCompletionBlock != nil)")
        }
        await onThread { operation.start() }
        #expect(log.events == ["first", "set false"])
        await tracker.expectAllReleased()
    }
}
