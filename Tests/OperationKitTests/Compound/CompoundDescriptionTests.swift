import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: descriptions", .hangGuard) struct CompoundDescriptionTests {
    private func settled(
        _ compound: AsyncOperation, _ expected: String, _ location: SourceLocation = #_sourceLocation
    ) async {
        await eventually("it says:\n\(withoutAges(compound))", location) { withoutAges(compound) == expected }
    }

    @Test("A compound names its unfinished children, and what they wait for") func children() async throws {
        // A name is on one line.
        let child = ScriptedOperation("a\nb\u{1b}")
        let family = CompoundOperation(name: "Family", operations: [child])
        #expect(child.debugDescription == #"“a\nb\u{1B}”: not started, inside “Family”"#)
        #expect(withoutAges(family).hasSuffix(#"“a\nb\u{1B}”: not started"#))
        let (login, upload) = (ScriptedOperation.idle("login"), ScriptedOperation.idle("upload"))
        let notify = ChildKind.block.make("notify") {}
        upload.addDependency(login)
        notify.addDependency(upload)
        let compound = CompoundOperation(name: "Sync", operations: [notify, upload, ScriptedOperation(), login])
        #expect(
            withoutAges(compound) == """
                “Sync”: not started, 0 of 4 children have ended
                  “notify”: waiting for “upload”, which waits for “login”, which has not been started
                  “upload”: waiting for “login”, which has not been started
                  “ScriptedOperation 2”: not started
                  “login”: not started
                """)
        compound.start()
        await settled(
            compound,
            """
            “Sync”: executing, 1 of 4 children have ended
              “login”: executing
              “notify”: waiting for “upload”, which waits for “login”, which is executing
              “upload”: waiting for “login”, which is executing
            """)
        login.finish()
        await eventually("not begun") { upload.isAtWork }
        upload.finish()
        try await compound.finished()
        #expect(compound.debugDescription == "“Sync”: finished, 4 of 4 children have ended")
    }

    @Test(
        "A compound that was cancelled, before its start or later, or told to finish, names the child it waits for",
        arguments: [
            "cancelled, told to end, waiting for its children", "cancelled, executing",
            "told to end, waiting for its children",
        ])
    func endedFromOutside(state: String) async {
        // It goes on when it is cancelled.
        let child = ForeignOperation("deaf") { _ in }
        child.start()
        let compound = CompoundOperation(name: "Sync", operations: [child])
        if state.hasPrefix("cancelled, told") { compound.cancel() }
        compound.start()
        if state == "cancelled, executing" { compound.cancel() }
        if state.hasPrefix("told") { compound.finish() }
        await settled(compound, "“Sync”: \(state), 0 of 1 children have ended\n  “deaf”: cancelled, executing")
        child.finish()
        try? await compound.finished()
    }

    @Test("Children of a nested compound are indented, and ready ones of a suspended one say so") func nested() async {
        let inner = CompoundOperation(
            name: "pages", operations: [ScriptedOperation("page 1"), ScriptedOperation("page 2")])
        let last = ScriptedOperation("last")
        last.addDependency(inner)
        let compound = CompoundOperation(name: "Sync", operations: [inner, last])
        compound.isSuspended = true
        compound.start()
        #expect(
            withoutAges(compound) == """
                “Sync”: executing, 0 of 2 children have ended, suspended
                  “pages”: ready, but the children are suspended, 0 of 2 children have ended
                    “page 1”: not started
                    “page 2”: not started
                  “last”: waiting for “pages”, which has not been started
                """)
        compound.cancel()
        try? await compound.finished()
    }

    @Test("What is known of a composite stands before what it waits for") func waitingComposite() {
        let load = ScriptedOperation.idle("load")
        let export = CompoundOperation(name: "export", operations: [ScriptedOperation(), ScriptedOperation()])
        export.addDependency(load)
        load.start()
        let first = withoutAges(export).split(separator: "\n").first
        #expect(first == "“export”: 0 of 2 children have ended, waiting for “load”, which is executing")
        load.finish()
        let database = ExclusiveAccess("database")
        let holder = EventLog().held("import", database)
        holder.start()
        let copy = CompoundOperation(name: "copy", operations: [ScriptedOperation()])
        copy.require(database)
        copy.start()
        #expect(copy.debugDescription.hasPrefix("“copy”: 0 of 1 children have ended, "))
        #expect(copy.debugDescription.contains(", held by “import”\n"))
        let pause = DelayOperation(for: .seconds(1), name: "pause")
        pause.require(database)
        pause.start()
        #expect(pause.debugDescription.contains("waiting for exclusive access to “database”"))
        for operation in [copy, pause, holder] { operation.cancel() }
        holder.finish()
        let longPause = DelayOperation(for: .seconds(5_000), name: "pause")
        longPause.start()
        #expect(withoutAges(longPause) == "“pause”: executing, waiting \(Duration.seconds(5_000).shortText)")
        longPause.cancel()
    }

    @Test("A macro names its steps and what they wait for") func macro() async throws {
        let first = Step<Int, Int>("first") { _, _ in }
        let second = IOBlockOperation<Int, Int>(name: "second") { $0 }
        let macro = MacroOperation(first).then(second)
        macro.name = "Macro"
        macro.input = 1
        #expect(
            withoutAges(macro) == """
                “Macro”: not started, 2 steps
                  “first”: not started
                  “second”: waiting for “first”, which has not been started
                """)
        macro.start()
        #expect(withoutAges(macro).hasPrefix("“Macro”: executing, 0 of 2 steps have ended\n  “first”: "))
        macro.cancel()
        try? await macro.finished()
    }

    @Test("What was continued by `then` is described without parts, a map with its source") func continued() {
        let mapped = Step<Int, Int>("load") { _, _ in }.map { $0 + 1 }.with(input: 1)
        #expect(withoutAges(mapped) == "“load”: not started, 1 step\n  “load”: not started")
        let macro = MacroOperation(IOBlockOperation<Int, Int>(name: "first") { $0 })
        macro.name = "Macro"
        _ = macro.then(IOBlockOperation<Int, Int>(name: "second") { $0 })
        #expect(withoutAges(macro) == "“Macro”: not started")
        let waterfall = Waterfall<Int, Int>(name: "Falls").then { $0 }
        _ = waterfall.then { $0 }
        #expect(withoutAges(waterfall) == "“Falls”: not started")
    }

    @Test("A waterfall says how many jobs have started, and which one runs") func waterfall() async throws {
        let made = Step<Void, Int>("made") { _, _ in }
        let waterfall = Waterfall<Int, Int>(name: "Falls").then { $0 + 1 }.thenRun { _ in made }.then { $0 }
        waterfall.name = "Falls"
        waterfall.input = 1
        #expect(withoutAges(waterfall) == "“Falls”: not started, 0 of 3 jobs have started")
        waterfall.start()
        await settled(waterfall, "“Falls”: executing, 2 of 3 jobs have started\n  “made”: executing")
        waterfall.isSuspended = true
        #expect(withoutAges(waterfall).hasPrefix("“Falls”: executing, 2 of 3 jobs have started, suspended\n"))
        waterfall.isSuspended = false
        made.finish(with: 7)
        #expect(try await waterfall.value == 7)
    }
}

@Suite("Descriptions: bounds", .hangGuard) struct DescriptionBoundsTests {
    @Test("A large compound names the children that execute and some others, and counts the rest") func large() async {
        // The only child that begins is the last one of all.
        let last = ScriptedOperation.idle("last")
        last.queuePriority = .veryHigh
        let count = TestExtent.choose(4_000, long: 100_000)
        let children = (0..<count).map { _ in ScriptedOperation() }
        let compound = CompoundOperation(name: "Many", operations: children + [last], maxConcurrentOperationCount: 1)
        await compound.start(until: last)
        let lines = withoutAges(compound).split(separator: "\n")
        #expect(lines.count == 102)
        #expect(lines[0] == "“Many”: executing, 0 of \(count + 1) children have ended")
        #expect(lines[1] == "  “last”: executing")
        #expect(lines[2] == "  “ScriptedOperation 0”: ready, but the limit of 1 is reached")
        #expect(lines[100] == "  “ScriptedOperation 98”: ready, but the limit of 1 is reached")
        #expect(lines[101] == "  … and \(count - 99) more")
        last.finish()
        try? await compound.finished()
    }

    @Test("The description of a tree of compounds has a bounded number of lines") func tree() {
        let compounds = (0..<20).map { index in
            CompoundOperation(name: "\(index)", operations: (0..<50).map { _ in ScriptedOperation() })
        }
        let lines = CompoundOperation(operations: compounds).debugDescription.split(separator: "\n")
        #expect(lines.count == OperationTree.length)
        #expect(lines.last == "    … and more")
    }

    @Test("A description follows the dependencies of many children once, not for each of them") func chain() {
        let reads = Shared(0)
        let children = (0..<9_000).map { _ in ReadOperation() }
        for (child, next) in zip(children, children.dropFirst()) { child.addDependency(next) }
        let compound = CompoundOperation(name: "Many", operations: children)
        for child in children { child.willRead.value = { _ = reads.increment() } }
        #expect(compound.debugDescription.contains("waiting for “ReadOperation”, which waits for “ReadOperation”"))
        #expect(reads.value < 3_000)
    }
}

@Suite("Descriptions: reasons", .hangGuard) struct ChildSnapshotTests {
    /// A composite of a width of 2 with two children.
    private static func readiness(isStarted: Bool = true, _ change: (inout ReadinessStateMachine) -> Void = { _ in })
        -> ReadinessStateMachine
    {
        var readiness = ReadinessStateMachine(limit: 2)
        for operation in [AsyncOperation(), AsyncOperation()] {
            readiness.registered(readiness.table.insert(operation), priority: .normal)
        }
        guard isStarted else { return readiness }
        readiness.prepared()
        readiness.started()
        change(&readiness)
        return readiness
    }

    private static let schedules = [
        readiness(isStarted: false), readiness { $0.places.isSuspended = true }, readiness { $0.cancellationStarted() },
        readiness { while $0.startNext() != nil {} }, readiness(),
    ]

    private static let ready = [
        nil, "ready, but the children are suspended", "ready, but the children are being cancelled",
        "ready, but the limit of 2 is reached", "ready, waiting for a thread",
    ]

    // not begun | suspended | cancelling | limit 2 | none
    static let table: [(ChildPhase, isReady: Bool, [String?])] =
        [
            (.added, true, [nil] + Array(repeating: "about to become ready", count: 4)),
            (.waiting, true, [nil] + Array(repeating: "about to become ready", count: 4)),
            (.ready, true, ready),
            (.queuedUnready, false, Array(repeating: "not ready by itself", count: 5)),
            (.queued, true, ready),
        ]
        + [.starting, .detached, .ending(.detached)].map { ($0, true, Array(repeating: "starting", count: 5)) }

    @Test("A description says why a child has not started, whatever its state and its parent's", arguments: table)
    func reasons(phase: ChildPhase, isReady: Bool, reasons: [String?]) {
        let wait = "waiting for “b”, which is starting"
        let waits = [ChildSnapshot.Stage.waiting, .queued].contains(phase.stage)
        for (readyText, reason) in zip(Self.schedules.map(\.readyText), reasons) {
            func text(wait: String?) -> String? {
                ChildSnapshot.reason(phase.stage, wait: wait, isReady: isReady, readyText: readyText)
            }
            #expect(text(wait: nil) == reason, "\(readyText as Any)")
            #expect(
                text(wait: wait) == (waits ? wait : reason),
                "Who waits for another one says so, unless that does not matter any more.")
        }
    }
}
