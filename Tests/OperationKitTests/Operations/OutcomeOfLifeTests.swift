import OperationKitTestSupport

/// The first finish wins, before the start and after it. A cancellation is Foundation's, and before the start nothing runs.
@Suite("Finishing and cancelling", .hangGuard) struct OutcomeOfLifeTests {
    /// What happens to an operation before its start, in its work, and after its end.
    struct Life: Sendable, CustomTestStringConvertible {
        typealias Steps = @Sendable (ScriptedOperation) -> Void

        let testDescription: String
        let outcome: String
        let isCancelled: Bool
        let runs: Bool
        let before: Steps
        let main: Steps
        let after: Steps

        private init(
            _ description: String, _ outcome: String, isCancelled: Bool = false, before: Steps? = nil,
            main: @escaping Steps = { $0.finish() }, after: @escaping Steps = { _ in }
        ) {
            (testDescription, self.outcome, self.isCancelled, runs) = (description, outcome, isCancelled, before == nil)
            (self.before, self.main, self.after) = (before ?? { _ in }, main, after)
        }

        static let all = [
            Life("cancelled before the start", "cancelled", isCancelled: true) { $0.cancel() },
            Life("cancelled with a reason", "reason", isCancelled: true) { $0.cancel(withError: TestError.reason) },
            Life("cancelled, then with a reason", "cancelled", isCancelled: true) {
                $0.cancel()
                $0.cancel(withError: TestError.reason)
            },
            Life("cancelled with a reason, then with others", "reason", isCancelled: true) {
                $0.cancel(withError: TestError.reason)
                $0.cancel()
                $0.cancel(withError: TestError.second)
            },
            Life("finished before the start", "success") {
                #expect($0.finish() && !$0.finish(withError: TestError.second))
            },
            Life("failed before the start", "first") {
                #expect($0.finish(withError: TestError.first) && !$0.finish())
            },
            Life("finished, then cancelled before the start", "first", isCancelled: true) {
                $0.finish(withError: TestError.first)
                $0.cancel()
            },
            Life("cancelled, then finished before the start", "success", isCancelled: true) {
                $0.cancel()
                #expect($0.finish())
            },
            Life(
                "fails in its work, and is finished, started and cancelled again", "first",
                main: {
                    $0.start()
                    #expect($0.finish(withError: TestError.first) && $0.isFinished)
                    #expect(!$0.finish(withError: TestError.second))
                    $0.cancel()
                },
                after: {
                    $0.start()
                    #expect(!$0.finish())
                    $0.cancel(withError: TestError.reason)
                }),
            Life("finishes on another thread", "success", main: { operation in elsewhere { operation.finish() } }),
            Life(
                "succeeds in its work, and fails again", "success",
                main: {
                    $0.finish()
                    #expect(!$0.finish(withError: TestError.second))
                }, after: { $0.cancel() }),
            Life(
                "is cancelled twice in its work", "cancelled", isCancelled: true,
                main: {
                    $0.cancel()
                    $0.cancel(withError: TestError.reason)
                }, after: { $0.cancel() }),
            Life(
                "is cancelled with a reason in its work", "reason", isCancelled: true,
                main: { $0.cancel(withError: TestError.reason) }, after: { $0.start() }),
        ]

        var events: [String] {
            (runs ? ["started", "running"] : []) + (isCancelled ? ["cancelled"] : [])
                + [outcome == "success" ? "finished" : "finished: \(outcome)"]
        }
    }

    @Test("The first outcome is delivered once, before all else of the end", arguments: Start.allCases, Life.all)
    func lives(start: Start, life: Life) async {
        let (log, recorder, returned, called) = (EventLog(), EventRecorder(), Gate(), Gate())
        let operation = recorder.observe(
            ScriptedOperation.stoppable("load") {
                log.add("main")
                life.main($0)
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
            life.before(operation)
            #expect(!operation.isFinished && operation.error == nil)
        }
        // Code that waits for the end may go on before `main()` returns.
        if life.runs { await returned.opened() }
        await recorder.end(of: "load")
        await onThread { dependent.waitUntilFinished() }
        await called.opened()
        life.after(operation)
        let outcome = "\(life.outcome) \(life.outcome), executing \(life.runs), finished false"
        let events = (life.runs ? ["main"] : []) + [outcome]
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
