import OperationKitTestSupport

/// The first finish wins, before the start and after it. A cancellation is Foundation's, and before the start nothing runs.
@Suite("Finishing and cancelling", .hangGuard) struct OutcomeOfLifeTests {
    enum Act: CaseIterable, Sendable {
        case finish, fail, cancel, cancelWithReason

        var isEnd: Bool { self == .finish || self == .fail }
    }

    /// What happens to an operation, before its start or in its work. Cancelled there, it stops.
    struct Life: Sendable {
        let acts: [Act]
        let isBefore: Bool

        static let all = [true, false].flatMap { isBefore in
            Act.allCases.flatMap { first in [[first]] + Act.allCases.map { [first, $0] } }
                .map { Life(acts: $0, isBefore: isBefore) }
        }

        var outcome: String {
            switch acts.first(where: \.isEnd) ?? acts[0] {
            case .finish: "success"
            case .fail: "first"
            case .cancel: "cancelled"
            case .cancelWithReason: "reason"
            }
        }

        /// A cancellation after the end of the work has no effect.
        var isCancelled: Bool { !(isBefore ? acts[...] : acts.prefix { !$0.isEnd }).allSatisfy(\.isEnd) }

        var events: [String] {
            (isBefore ? [] : ["started", "running"]) + (isCancelled ? ["cancelled"] : [])
                + [outcome == "success" ? "finished" : "finished: \(outcome)"]
        }

        func act(on operation: AsyncOperation) {
            for (index, act) in acts.enumerated() {
                let isFirst = !acts[..<index].contains(where: \.isEnd)
                switch act {
                case .finish: #expect(operation.finish() == isFirst)
                case .fail: #expect(operation.finish(withError: TestError.first) == isFirst)
                case .cancel: operation.cancel()
                case .cancelWithReason: operation.cancel(withError: TestError.reason)
                }
            }
        }
    }

    @Test("The first outcome is delivered once, before all else of the end", arguments: Start.allCases, Life.all)
    func lives(start: Start, life: Life) async {
        let (log, recorder, returned, called) = (EventLog(), EventRecorder(), Gate(), Gate())
        let operation = recorder.observe(
            ScriptedOperation.stoppable("load") {
                log.add("main")
                $0.start()
                life.act(on: $0)
                returned.open()
            })
        operation.asyncCompletionBlock = { [unowned operation] error in
            let states = "executing \(operation.isExecuting), finished \(operation.isFinished)"
            log.add("\(text(error)) \(text(operation.error)), \(states)")
            // Neither has an effect any more.
            #expect(!operation.finish(withError: TestError.second))
            operation.cancel(withError: TestError.second)
        }
        operation.completionBlock = {
            log.add("completionBlock, finished \(operation.isFinished)")
            operation.cancel(withError: TestError.second)
            called.open()
        }
        let dependent = BlockOperation { log.add("dependent") }
        dependent.addDependency(operation)
        OperationQueue().addOperation(dependent)
        await start(operation) {
            if life.isBefore { life.act(on: operation) }
            #expect(!operation.isFinished && operation.error == nil)
        }
        // Code that waits for the end may go on before `main()` returns.
        if !life.isBefore { await returned.opened() }
        await recorder.end(of: "load")
        await onThread { dependent.waitUntilFinished() }
        await called.opened()
        operation.start()
        operation.cancel(withError: TestError.second)
        let outcome = "\(life.outcome) \(life.outcome), executing \(!life.isBefore), finished false"
        let events = (life.isBefore ? [] : ["main"]) + [outcome]
        #expect(Array(log.events.prefix(events.count)) == events && log.events.count == events.count + 2)
        #expect(Set(log.events.suffix(2)) == ["dependent", "completionBlock, finished true"])
        #expect(recorder.events(of: "load") == life.events)
        #expect(operation.isFinished && !operation.isExecuting && operation.isCancelled == life.isCancelled)
        #expect(text(operation.error) == life.outcome)
    }

    @Test("`asyncCompletionBlock` is called on the thread that ends the operation") func threadOfEnd() async {
        let (operation, thread) = (ScriptedOperation.idle(), Shared<Thread?>(nil))
        operation.asyncCompletionBlock = { _ in thread.value = Thread.current }
        await onThread { operation.start() }
        await onThread {
            operation.finish()
            #expect(thread.value === Thread.current)
        }
        // A thread holds what it runs.
        thread.value = nil
    }

    @Test("`asyncCompletionBlock` can be replaced and removed until the end, and set after an outcome before the start")
    func replacedAndRemoved() async {
        let (log, ended) = (EventLog(), ScriptedOperation())
        for isRemoved in [false, true] {
            let operation = ScriptedOperation.idle()
            operation.asyncCompletionBlock = { _ in log.add("first") }
            operation.start()
            operation.asyncCompletionBlock = { log.add("second, \(text($0))") }
            if isRemoved { operation.asyncCompletionBlock = nil }
            operation.finish()
            #expect(operation.asyncCompletionBlock == nil)
        }
        ended.finish(withError: TestError.first)
        ended.asyncCompletionBlock = { log.add("third, \(text($0))") }
        await onThread { ended.start() }
        #expect(log.events == ["second, success", "third, first"])
    }

    @Test("An `asyncCompletionBlock` that is set in the call of another one is dropped") func setInItself() async {
        let (tracker, log, operation) = (LeakTracker(), EventLog(), ScriptedOperation())
        operation.asyncCompletionBlock = { [unowned operation] _ in
            let token = tracker.token("inner block")
            operation.asyncCompletionBlock = { _ in log.add("\(token.use())") }
            log.add("set \(operation.asyncCompletionBlock != nil)")
        }
        await onThread { operation.start() }
        #expect(log.events == ["set false"])
        await tracker.expectAllReleased()
    }
}
