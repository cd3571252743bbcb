import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Changes of state, as far as they can be seen on Linux: code that listens to Foundation reacts, and finds the state that was announced.
@Suite("Changes are announced", .hangGuard) struct KeyValueTests {
    /// Writes down what its dependency reads as whenever Foundation asks for its readiness.
    private final class Probe: Operation, @unchecked Sendable {
        private let dependency: AsyncOperation
        let seen = Shared<[String]>([])

        init(of dependency: AsyncOperation) {
            self.dependency = dependency
            super.init()
            addDependency(dependency)
            seen.value = []
        }

        override var isReady: Bool {
            let text = "executing \(dependency.isExecuting), finished \(dependency.isFinished)"
            seen.change { $0.append(text) }
            return super.isReady
        }
    }

    @Test(
        "Foundation asks whether a dependent is ready once the operation reads as finished", arguments: Start.allCases)
    func asksDependent(start: Start) async {
        let operation = ScriptedOperation()
        let probe = Probe(of: operation)
        await start(operation)
        #expect(probe.seen.value.last == "executing false, finished true")
        #expect(probe.isReady)
    }

    @Test(
        "`isExecuting` becomes false and `isFinished` true in one step, after `asyncCompletionBlock`",
        arguments: Start.allCases)
    func changeTogether(start: Start) async {
        let log = EventLog()
        let returns = Gate()
        let operation = ScriptedOperation(main: {
            log.add("main: \($0.isExecuting) \($0.isFinished)")
            $0.finish()
            log.add("finished: \($0.isExecuting) \($0.isFinished)")
            returns.open()
        })
        operation.asyncCompletionBlock = { [unowned operation] _ in
            log.add("asyncCompletionBlock: \(operation.isExecuting) \(operation.isFinished)")
        }
        log.add("before: \(operation.isExecuting) \(operation.isFinished)")
        await start(operation)
        // Code that waits for the end may go on before `main()` returns.
        await returns.opened()
        #expect(
            log.events == [
                "before: false false", "main: true false", "asyncCompletionBlock: true false", "finished: false true",
            ])
    }

    #if DEBUG
    /// Writes down what the operation reads as right before it announces a change. On Linux its announcements cannot be
    /// overridden.
    private final class Announcements: SchedulingProbe.Observer {
        var events: [String] = []

        func reached(_ place: SchedulingProbe.Place) {
            switch place {
            case .willChange(let operation, let key): note("will change", key, operation)
            case .didChange(let operation, let key): note("did change", key, operation)
            case .locking, .unlocked, .told: break
            }
        }

        private func note(_ announcement: String, _ key: String, _ operation: Operation) {
            events.append("\(announcement) \(key): \(operation.isExecuting) \(operation.isFinished)")
        }

        func makeQueue() -> CompositeQueue { CompositeQueue() }

        func runWorker(_ work: @escaping @Sendable () -> Void) { work() }
    }

    @Test(
        "`willChangeValue(forKey:)` precedes the change of `isExecuting` and `isFinished`, `didChangeValue` follows it"
    )
    func announcements() {
        let announcements = Announcements()
        SchedulingProbe.observed(by: announcements) {
            let operation = ScriptedOperation.idle()
            operation.start()
            operation.finish()
        }
        #if canImport(ObjectiveC)
        #expect(
            announcements.events == [
                "will change isExecuting: false false", "did change isExecuting: true false",
                "will change isExecuting: true false", "will change isFinished: true false",
                "did change isExecuting: false true", "did change isFinished: false true",
            ])
        #else
        #expect(
            announcements.events == [
                "will change isExecuting: false false", "did change isExecuting: true false",
                "will change isFinished: true false", "did change isFinished: false true",
            ])
        #endif
    }
    #endif

    @Test("No thread sees an operation between executing and finished") func nothingBetween() async {
        let torn = Shared(0)
        await race(
            rounds: 2_000, seed: 1, prepare: { _ in ScriptedOperation.idle() },
            [
                { $0.start() },
                { $0.finish() },
                { operation in
                    var hasExecuted = false
                    for _ in 0..<40 {
                        let isExecuting = operation.isExecuting
                        let isFinished = operation.isFinished
                        // Once it has executed, it only ever stops by being finished.
                        if hasExecuted, !isExecuting, !isFinished { torn.change { $0 += 1 } }
                        if isExecuting { hasExecuted = true }
                        // Finished is for good, and excludes executing.
                        if isFinished, operation.isExecuting { torn.change { $0 += 1 } }
                    }
                },
            ],
            check: { operation, _ in if !operation.isFinished { torn.change { $0 += 1 } } })
        #expect(torn.value == 0)
    }

    @Test("A serial queue starts the next operation only after the end of the one before")
    func serialQueue() async throws {
        let log = EventLog()
        let started = Gate()
        let queue = OperationQueue.serial(name: "serial")
        let first = ScriptedOperation(main: { _ in
            log.add("first")
            started.open()
        })
        let second = ScriptedOperation(main: {
            log.add("second")
            $0.finish()
        })
        queue.addOperation(first)
        queue.addOperation(second)
        await started.opened()
        // The work of the first is still alive: it answers, and is the only one that has begun.
        #expect(first.isExecuting)
        log.add("finish")
        first.finish()
        try await second.finished()
        #expect(log.events == ["first", "finish", "second"])
    }

    @Test("`waitUntilFinished()` returns after the end") func waitReturns() async {
        let operation = ScriptedOperation.idle()
        let returned = EventLog()
        let waiting = Task {
            await onThread {
                operation.waitUntilFinished()
                returned.add("finished \(operation.isFinished)")
            }
        }
        operation.start()
        operation.finish()
        await waiting.value
        #expect(returned.events == ["finished true"])
    }

    @Test("A dependent on another queue starts after the end") func otherQueue() async throws {
        let (one, other) = (OperationQueue(), OperationQueue())
        let log = EventLog()
        let first = ScriptedOperation.logged(log)
        let second = ScriptedOperation(main: {
            log.add("dependent")
            $0.finish()
        })
        second.addDependency(first)
        other.addOperation(second)
        one.addOperation(first)
        try await second.finished()
        #expect(log.events == ["main", "asyncCompletionBlock success", "dependent"])
    }

    @Test("An operation says that it is asynchronous") func isAsynchronous() {
        #expect(ScriptedOperation().isAsynchronous)
        #expect(TaskOperation { 1 }.isAsynchronous)
    }

    @Test("An operation is ready once its dependencies have finished") func isReady() async {
        let first = ScriptedOperation()
        let second = ScriptedOperation()
        second.addDependency(first)
        #expect(first.isReady && !second.isReady)
        await onThread { first.start() }
        #expect(second.isReady)
    }
}
