import OperationKitTestSupport

@testable import OperationKit

/// A reporter of its own, so that operations of other tests are not in the way.
struct ReleaseReports {
    let reporter = MisuseReporter()
    let reports = Shared<[UnfinishedOperation]>([])

    init() {
        let reports = reports
        reporter.handler = { report in
            if case .released(let operation) = report { reports.change { $0.append(operation) } }
        }
    }

    func record(_ operation: AsyncOperation, _ registry: ExecutionRegistry? = nil) {
        operation.replaceExecutionRecord(by: ExecutionRecord(operation, registry, reporter, at: .now))
    }

    var all: [UnfinishedOperation] {
        reporter.waitForReports()
        return reports.value
    }
}

@Suite("Diagnostics", .hangGuard, .enabled(if: OperationDiagnostics.level != .off)) struct DiagnosticsTests {
    @Test("An operation that is released while executing is reported once") func releasedWhileExecuting() throws {
        let reports = ReleaseReports()
        do {
            let operation = ScriptedOperation.idle("upload")
            operation.start()
            reports.record(operation)
            #expect(reports.all.isEmpty)
        }
        let report = try #require(reports.all.first)
        #expect(reports.all.count == 1)
        #expect(report.name == "upload")
        #expect(report.type == ScriptedOperation.self)
        #expect(report.age >= .zero)
        #expect(report.callStack.isEmpty)
        #expect(report.description.hasPrefix("OperationKit: “upload” (ScriptedOperation) was released while executing"))
        let advice = "Keep it alive until it finishes: let its work hold it, or keep a reference to it."
        #expect(report.description.hasSuffix(". " + advice))
    }

    /// What reports say of an operation that was started on a queue, and of one on a thread.
    private func origins(queue queueName: String?, thread threadName: String) async -> [String] {
        let reports = ReleaseReports()
        let queue = OperationQueue()
        queue.name = queueName
        await onThread {
            let onQueue = ScriptedOperation(main: {
                reports.record($0)
                // As if it were released here, which a queue does not do.
                $0.withState { $0.execution = nil }
                $0.finish()
            })
            queue.addOperation(onQueue)
            queue.waitUntilAllOperationsAreFinished()
            // On Linux a thread takes no name until the thread that started it has noted which one it is.
            while Thread.current.name != threadName { Thread.current.name = threadName }
            let byHand = ScriptedOperation.idle()
            byHand.start()
            reports.record(byHand)
        }
        return reports.all.map(\.origin)
    }

    @Test(
        "A report names the queue or the thread of the start, except for names that Foundation and Dispatch give",
        arguments: ["Importer", "", "oot.default-qos", "-qos.overcommit"])
    func originInReport(thread: String) async {
        if thread == "Importer" {
            let named = await origins(queue: "Network", thread: thread)
            return #expect(named == ["the queue “Network”", "the thread “Importer”"])
        }
        let unnamed = OperationQueue()
        if thread.isEmpty { unnamed.name = nil }
        #expect(
            await origins(queue: unnamed.name, thread: thread) == ["a queue without a name", "a thread without a name"])
    }

    @Test("A report says so when an operation was started on the main thread") func originOnMainThread() {
        func place(on queue: OperationQueue?) -> String {
            ExecutionRecord.place(on: queue, isMainThread: true, threadName: "messages")
        }
        #expect(place(on: .main) == "the main thread" && place(on: nil) == "the main thread")
        #expect(place(on: .serial(name: "uploads")) == "the queue “uploads”")
    }

    @Test("The other reports are sentences with the names") func otherReports() {
        let upload = UnfinishedOperation(
            name: "upload", type: ScriptedOperation.self, age: .milliseconds(5), origin: "the main thread",
            callStack: [])
        let lost = MisuseReport.lostFinish(.operation(name: "upload"), operation: upload)
        #expect(lost.description.hasSuffix(" Call it on every path. It was started on the main thread, 5 ms earlier."))
        #expect(
            MisuseReport.lateDependency(operation: "upload", dependency: "login").description
                == "OperationKit: The operation “upload” had started when it was bound to “login”, or told to require "
                + "the success of that one. That is ignored. Do it before the operation is added to a queue.")
    }

    @Test("Where an operation was started is known while it executes, and neither before nor after")
    func originWhileExecuting() async {
        let (begun, queue) = (Gate(), OperationQueue())
        queue.name = "Network"
        let operation = ScriptedOperation(main: { _ in begun.open() })
        #expect(OperationDiagnostics.origin(of: operation) == nil)
        queue.addOperation(operation)
        await begun.opened()
        #expect(OperationDiagnostics.origin(of: operation) == "the queue “Network”")
        operation.finish()
        #expect(OperationDiagnostics.origin(of: operation) == nil)
        #expect(OperationDiagnostics.callStack(of: operation).isEmpty)
    }

    @Test("An operation that has finished is not reported, however it ended", arguments: Start.allCases)
    func endedIsNotReported(start: Start) async {
        let reports = ReleaseReports()
        let (tracker, records) = (LeakTracker(), LeakTracker())
        let ends: [@Sendable (ScriptedOperation) -> Void] = [
            { $0.finish() }, { $0.finish(withError: TestError.first) }, { $0.cancel() },
        ]
        for end in ends {
            let operation = ScriptedOperation.stoppable {
                reports.record($0)
                if let record = $0.withState({ $0.execution }) { records.track(record) }
                end($0)
            }
            await start(tracker.track(operation))
        }
        await tracker.expectAllReleased()
        await records.expectAllReleased()
        #expect(reports.all.isEmpty)
    }

    @Test("Nothing is recorded of an operation that does not execute, so it is not reported", arguments: Start.allCases)
    func unrecorded(start: Start) async {
        let wasRecorded = Shared(false)
        await start(
            ScriptedOperation { operation in
                wasRecorded.value = operation.withState { $0.execution != nil }
                operation.finish()
            })
        #expect(wasRecorded.value)
        for prepare: @Sendable (AsyncOperation) -> Void in [{ $0.cancel() }, { $0.finish(withError: TestError.first) }]
        {
            let operation = AsyncOperation()
            prepare(operation)
            await start(operation)
            #expect(operation.isFinished && operation.withState { $0.execution == nil })
        }
    }

    @Test("A handler may use operations, and one that it releases is reported after it")
    func handlerUsesOperations() async {
        let reporter = MisuseReporter()
        let log = EventLog()
        reporter.handler = { [weak reporter] report in
            guard case .released(let report) = report else { return }
            // Another one is released in here, which is reported after this one.
            let another = ScriptedOperation.idle("another")
            if report.name == "first", let reporter {
                another.start()
                another.replaceExecutionRecord(by: ExecutionRecord(another, nil, reporter, at: .now))
            }
            let compound = CompoundOperation(operations: [ScriptedOperation()])
            compound.start()
            compound.waitUntilFinished()
            log.add(report.name)
        }
        await onThread {
            let operation = ScriptedOperation.idle("first")
            operation.start()
            operation.replaceExecutionRecord(by: ExecutionRecord(operation, nil, reporter, at: .now))
        }
        await eventually("\(log.events)") { log.events == ["first", "another"] }
    }

    @Test("Without a handler there are no reports") func withoutHandler() {
        let reports = ReleaseReports()
        reports.reporter.handler = nil
        do {
            let operation = ScriptedOperation.idle("upload")
            operation.start()
            reports.record(operation)
        }
        #expect(reports.all.isEmpty)
    }

    @Test("The environment sets the level") func levelOfEnvironment() {
        typealias Level = OperationDiagnostics.Level
        func level(_ environment: [String: String]) -> Level? {
            Level(rawValue: ExecutionRecording(environment: environment).rawValue)
        }
        let usual = level([:])
        #expect(usual != .all)
        for (value, expected) in [("off", .off), ("starts", .starts), ("all", .all), ("ALL", usual), ("", usual)] {
            #expect(level(["OPERATIONKIT_DIAGNOSTICS": value]) == expected, "\(value)")
        }
    }
}

@Suite("Diagnostics: registry", .hangGuard, .enabled(if: OperationDiagnostics.level != .off))
struct ExecutionRegistryTests {
    private let reporter = MisuseReporter()
    private let origin = ContinuousClock.now

    private func execution(
        of operation: AsyncOperation, in registry: ExecutionRegistry, at time: Int
    ) -> ExecutionRecord {
        ExecutionRecord(operation, registry, reporter, at: origin + .seconds(time))
    }

    @Test("Operations that execute for longer than asked are listed, oldest first, if users may know them")
    func oldestFirst() {
        let registry = ExecutionRegistry()
        let operations = "abcd".map { ScriptedOperation.idle(String($0)) }
        operations[3].hideFromObservers()
        let executions = zip(operations, [30, 10, 20, 5]).map { execution(of: $0, in: registry, at: $1) }
        let now = origin + .seconds(40)
        #expect(registry.operations(executingLongerThan: .zero, at: now).map(\.name) == ["b", "c", "a"])
        #expect(registry.operations(executingLongerThan: .seconds(20), at: now).map(\.name) == ["b"])
        #expect(registry.operations(executingLongerThan: .seconds(30), at: now).isEmpty)
        for execution in executions { execution.ended() }
    }

    @Test("The list of executing operations keeps none of them alive") func keepsNothingAlive() async {
        let tracker = LeakTracker()
        let registry = ExecutionRegistry()
        reporter.handler = nil
        do {
            let operation = tracker.track(ScriptedOperation.idle())
            operation.start()
            operation.replaceExecutionRecord(by: execution(of: operation, in: registry, at: 0))
        }
        await tracker.expectAllReleased()
        #expect(registry.operations(executingLongerThan: .zero, at: .now).isEmpty)
    }

    @Test("Operations may be listed while others start and finish") func duringStartsAndEnds() async {
        let registry = ExecutionRegistry()
        await race(
            rounds: 200, seed: SplitMix64.freshSeed(), prepare: { _ in ScriptedOperation.idle() },
            [
                { operation in
                    operation.start()
                    operation.replaceExecutionRecord(by: execution(of: operation, in: registry, at: 0))
                    operation.finish()
                },
                { _ in for _ in 0..<5 { _ = registry.operations(executingLongerThan: .zero, at: .now).map(\.name) } },
            ],
            check: { _, _ in #expect(registry.operations(executingLongerThan: .zero, at: .now).isEmpty) })
    }
}

#if os(macOS) || os(Linux)
private func finishAfterSuperMain() {
    final class Late: AsyncOperation, @unchecked Sendable { override func main() { super.main() } }
    let late = Late()
    late.start()
    late.finish()
}

/// The level belongs to the process, so each of these has one of its own.
@Suite("Diagnostics: levels", .hangGuard) struct DiagnosticsProcessTests {
    @Test("At the level `all`, executing operations are listed, and reports have a call stack") func levelAll() async {
        await #expect(processExitsWith: .success) {
            let reports = misuseReports(level: "all") { report in
                if case .released(let operation) = report { operation } else { nil }
            }
            do {
                let operation = ScriptedOperation.idle("upload")
                operation.start()
                let finished = ScriptedOperation()
                finished.start()
                precondition(OperationDiagnostics.level == .all)
                precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [operation])
                precondition(OperationDiagnostics.operations(executingLongerThan: .seconds(1_000)) == [])
                precondition(OperationDiagnostics.callStack(of: operation).count > 1)
            }
            MisuseReporter.shared.waitForReports()
            precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [])
            precondition(reports.value.map(\.name) == ["upload"])
            precondition(reports.value[0].callStack.count > 1)
            precondition(reports.value[0].description.split(separator: "\n").count > 2)
        }
    }

    @Test(
        "The usual handler prints reports to standard error; at the level `off`, nothing is recorded or reported",
        arguments: ["starts", "off"])
    func usualHandler(level: String) async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) { [level] in
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", level, 1)
            let operation = ScriptedOperation.idle("held")
            operation.start()
            precondition((operation.debugDescription == "“held”: executing") == (level == "off"))
            operation.finish()
            do { ScriptedOperation.idle("upload").start() }
            precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [])
            finishAfterSuperMain()
            for name in ["lost", "dropped"] {
                let kept = Shared<FinishHandle<Void>?>(nil)
                let operation = AsyncBlockOperation(name: name) { kept.value = $0 }
                operation.start()
                if name == "dropped" { operation.cancel() }
                kept.value = nil
                try? await operation.finished()
            }
            MisuseReporter.shared.waitForReports()
        }
        let printed = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(printed.contains("“lost” was ended") == (level != "off") && !printed.contains("dropped"))
        if level == "off" { return #expect(!printed.contains("upload") && !printed.contains("Late")) }
        #expect(printed.contains("OperationKit: “upload” (ScriptedOperation) was released while executing"))
        #if DEBUG
        #expect(printed.contains("of the class “Late”, because the default main() had finished it before."))
        #endif
    }
}
#endif

extension AsyncOperation {
    /// What is known of the start is recorded for a test, in place of what is recorded for everybody.
    fileprivate func replaceExecutionRecord(by execution: ExecutionRecord) {
        let previous = withState { state in
            defer { state.execution = execution }
            return state.execution
        }
        previous?.ended()
    }
}

extension MisuseReporter {
    func waitForReports() {
        queue.sync {}
    }
}
