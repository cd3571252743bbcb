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
        var before: Steps = { _ in }
        var main: Steps = { $0.finish() }
        var after: Steps = { _ in }

        private init(_ description: String, _ outcome: String, isCancelled: Bool = false, before: @escaping Steps) {
            (testDescription, self.outcome, self.isCancelled) = (description, outcome, isCancelled)
            (runs, self.before) = (false, before)
        }

        private init(
            _ description: String, _ outcome: String, isCancelled: Bool = false, main: @escaping Steps,
            after: @escaping Steps
        ) {
            (testDescription, self.outcome, self.isCancelled) = (description, outcome, isCancelled)
            (runs, self.main, self.after) = (true, main, after)
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
            Life("succeeds in its work, and fails again", "success") {
                $0.finish()
                #expect(!$0.finish(withError: TestError.second))
            } after: {
                $0.cancel()
            },
            Life("is cancelled twice in its work", "cancelled", isCancelled: true) {
                $0.cancel()
                $0.cancel(withError: TestError.reason)
            } after: {
                $0.cancel()
            },
            Life("is cancelled with a reason in its work", "reason", isCancelled: true) {
                $0.cancel(withError: TestError.reason)
            } after: {
                $0.start()
            },
        ]

        /// What observers are told.
        var events: [String] {
            (runs ? ["started", "running"] : []) + (isCancelled ? ["cancelled"] : [])
                + [outcome == "success" ? "finished" : "finished: \(outcome)"]
        }
    }

    @Test(
        "The first outcome is delivered once, and what is cancelled or finished before its start runs nothing",
        arguments: Start.allCases, Life.all)
    func lives(start: Start, life: Life) async {
        let (log, recorder, returned) = (EventLog(), EventRecorder(), Gate())
        let operation = recorder.observe(
            ScriptedOperation(
                "load",
                main: {
                    log.add("main")
                    life.main($0)
                    returned.open()
                }, didCancel: { $0.finish(withError: CancellationError()) }))
        operation.asyncCompletionBlock = { [unowned operation] error in
            log.add("\(text(error)) \(text(operation.error)), executing \(operation.isExecuting)")
            // Neither has an effect any more.
            #expect(!operation.finish(withError: TestError.second))
            operation.cancel(withError: TestError.second)
        }
        await start(operation) {
            life.before(operation)
            #expect(!operation.isFinished && operation.error == nil)
        }
        // Code that waits for the end may go on before `main()` returns.
        if life.runs { await returned.opened() }
        await recorder.end(of: "load")
        life.after(operation)
        #expect(
            log.events == (life.runs ? ["main"] : []) + ["\(life.outcome) \(life.outcome), executing \(life.runs)"])
        #expect(recorder.events(of: "load") == life.events)
        #expect(operation.isFinished && !operation.isExecuting && operation.isCancelled == life.isCancelled)
        #expect(text(operation.error) == life.outcome)
    }

    @Test("An operation executes until `finish` is called, on whatever thread", arguments: Start.allCases)
    func later(start: Start) async throws {
        let begun = Gate()
        let operation = ScriptedOperation(main: { _ in begun.open() })
        async let ended: Void = start(operation)
        await begun.opened()
        #expect(operation.isExecuting && operation.error == nil)
        #expect(operation.finish())
        await ended
        #expect(operation.isFinished && !operation.isExecuting && operation.error == nil)
    }

    @Test("The default implementation of `main()` finishes the operation successfully", arguments: Start.allCases)
    func defaultMain(start: Start) async {
        let operation = AsyncOperation()
        await start(operation)
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test("A cancelled operation on a queue ends without waiting for its dependencies")
    func unfinishedDependency() async {
        let first = ScriptedOperation.idle()
        let second = ScriptedOperation()
        second.addDependency(first)
        await onThread {
            let queue = OperationQueue()
            queue.addOperation(second)
            second.cancel()
            // Foundation does not hold back a cancelled operation for its dependencies.
            second.waitUntilFinished()
        }
        #expect(second.error is CancellationError && !first.isFinished)
        first.start()
        first.finish()
    }

    @Test("A cancellation in `completionBlock` has no effect") func inCompletionBlock() async {
        let called = Gate()
        let operation = ScriptedOperation()
        operation.completionBlock = {
            operation.cancel()
            called.open()
        }
        await onThread { operation.start() }
        await called.opened()
        #expect(!operation.isCancelled)
    }
}
