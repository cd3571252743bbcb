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
    @Test("A report says where an operation was started, in names of users only") func originInReport() {
        func place(on queue: OperationQueue?, thread: String = "Importer", isMain: Bool = false) -> String {
            ExecutionRecord.place(on: queue, isMainThread: isMain, threadName: thread)
        }
        #expect(place(on: .main) == "the main thread" && place(on: nil, isMain: true) == "the main thread")
        #expect(place(on: .serial(name: "uploads"), isMain: true) == "the queue “uploads”")
        #expect(place(on: nil) == "the thread “Importer”")
        for name in ["", "oot.default-qos", "-qos.overcommit"] {
            #expect(place(on: nil, thread: name) == "a thread without a name")
        }
        let unnamed = OperationQueue()
        #expect(place(on: unnamed) == "a queue without a name")
        unnamed.name = nil
        #expect(place(on: unnamed) == "a queue without a name")
    }

    @Test("Where an operation was started is known while it executes") func originWhileExecuting() async {
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
        await onThread {
            // On Linux a thread takes no name until the thread that started it has noted which one it is.
            while Thread.current.name != "Importer" { Thread.current.name = "Importer" }
            let byHand = ScriptedOperation.idle()
            byHand.start()
            #expect(OperationDiagnostics.origin(of: byHand) == "the thread “Importer”")
            byHand.finish()
        }
    }

    @Test("An operation that has finished, or never executed, is not reported", arguments: Start.allCases)
    func endedIsNotReported(start: Start) async {
        let (reports, tracker) = (ReleaseReports(), LeakTracker())
        let ends: [@Sendable (ScriptedOperation) -> Void] = [
            { $0.finish() }, { $0.finish(withError: TestError.first) }, { $0.cancel() },
        ]
        for end in ends {
            let operation = ScriptedOperation.stoppable {
                #expect($0.withState { $0.execution != nil })
                reports.record($0)
                if let record = $0.withState({ $0.execution }) { tracker.track(record) }
                end($0)
            }
            await start(tracker.track(operation))
            let early = ScriptedOperation()
            await start(early) { end(early) }
            #expect(early.isFinished && early.withState { $0.execution == nil })
        }
        await tracker.expectAllReleased()
        #expect(reports.all.isEmpty)
    }

    @Test("A handler may use and release operations, and is called again") func handlerUsesOperations() async {
        let (reporter, log) = (MisuseReporter(), EventLog())
        @Sendable func release(_ name: String) {
            let operation = ScriptedOperation.idle(name)
            operation.start()
            operation.replaceExecutionRecord(by: ExecutionRecord(operation, nil, reporter, at: .now))
        }
        reporter.handler = { report in
            guard case .released(let report) = report else { return }
            if report.name == "first" { release("another") }
            let compound = CompoundOperation(operations: [ScriptedOperation()])
            compound.start()
            compound.waitUntilFinished()
            log.add(report.name)
        }
        await onThread { release("first") }
        await eventually("\(log.events)") { log.events == ["first", "another"] }
        reporter.handler = nil
    }

    @Test("The environment sets the level") func levelOfEnvironment() {
        func level(_ environment: [String: String]) -> OperationDiagnostics.Level? {
            OperationDiagnostics.Level(rawValue: ExecutionRecording(environment: environment).rawValue)
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

    @Test("Operations that execute for longer than asked are listed, oldest first") func oldestFirst() {
        let (registry, operations) = (ExecutionRegistry(), "abcd".map { ScriptedOperation.idle(String($0)) })
        operations[3].hideFromObservers()
        let executions = zip(operations, [30, 10, 20, 5]).map { execution(of: $0, in: registry, at: $1) }
        for (seconds, names) in [(0, ["b", "c", "a"]), (20, ["b"]), (30, [])] {
            let listed = registry.operations(executingLongerThan: .seconds(seconds), at: origin + .seconds(40))
            #expect(listed.map(\.name) == names)
        }
        for execution in executions { execution.hasEnded = true }
    }

    @Test("The list of executing operations keeps none of them alive") func keepsNothingAlive() async {
        let (tracker, registry) = (LeakTracker(), ExecutionRegistry())
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
        let (registry, rounds) = (ExecutionRegistry(), Shared(0))
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
            check: { operation, _ in
                #expect(registry.operations(executingLongerThan: .zero, at: .now).isEmpty && operation.isFinished)
                rounds.change { $0 += 1 }
            })
        #expect(rounds.value == TestExtent.choose(16, long: 200))
    }
}

#if os(macOS) || os(Linux)
/// Collects what a closure takes from the reports of misuse. The level and the handler belong to the process, so call this in a
/// process of the test's own, first of all.
func misuseReports<Value>(
    level: String = "starts", _ value: @escaping @Sendable (MisuseReport) -> Value?
) -> Shared<[Value]> {
    unsafe setenv("OPERATIONKIT_DIAGNOSTICS", level, 1)
    let reports = Shared<[Value]>([])
    OperationDiagnostics.handler = { report in
        if let value = value(report) { reports.change { $0.append(value) } }
    }
    return reports
}

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
            let reports = misuseReports(level: "all") {
                if case .released(let operation) = $0 { operation } else { nil }
            }
            do {
                let operation = ScriptedOperation.idle("upload")
                operation.start()
                ScriptedOperation().start()
                precondition(OperationDiagnostics.level == .all)
                precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [operation])
                precondition(OperationDiagnostics.operations(executingLongerThan: .seconds(1_000)) == [])
                precondition(OperationDiagnostics.callStack(of: operation).count > 1)
            }
            MisuseReporter.shared.waitForReports()
            precondition(OperationDiagnostics.operations(executingLongerThan: .zero) == [])
            precondition(reports.value.map(\.name) == ["upload"] && reports.value[0].callStack.count > 1)
            precondition(reports.value[0].description.split(separator: "\n").count > 2)
        }
    }

    @Test("The usual handler prints to standard error, and nothing at the level `off`", arguments: ["starts", "off"])
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
        #expect(printed.contains("Keep it alive until it finishes: let its work hold it, or keep a reference to it."))
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
        previous?.hasEnded = true
    }
}

extension MisuseReporter {
    func waitForReports() {
        queue.sync {}
    }
}
