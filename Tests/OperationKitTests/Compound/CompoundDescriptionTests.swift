import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: descriptions", .hangGuard) struct CompoundDescriptionTests {
    /// Lets the workers of a compound do all that they can, then describes it.
    private func settled(
        _ compound: AsyncOperation, _ expected: String, _ location: SourceLocation = #_sourceLocation
    ) async {
        await eventually("it says:\n\(withoutAges(compound))", location) { withoutAges(compound) == expected }
    }

    private func finish(_ operations: [AsyncOperation], of compound: AsyncOperation) async {
        compound.cancel()
        for operation in operations { operation.finish() }
        try? await compound.finished()
    }

    @Test("A compound names its unfinished children and what they wait for") func children() async throws {
        let login = ScriptedOperation.idle("login")
        let upload = ScriptedOperation.idle("upload")
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
        await settled(
            compound,
            """
            “Sync”: executing, 2 of 4 children have ended
              “upload”: executing
              “notify”: waiting for “upload”, which is executing
            """)
        upload.finish()
        try await compound.finished()
        #expect(compound.debugDescription == "“Sync”: finished, 4 of 4 children have ended")
    }

    @Test("A suspended compound and its ready children say that they are suspended") func suspended() async {
        let children = "ab".map { ScriptedOperation.idle(String($0)) }
        let compound = CompoundOperation(name: "Sync", operations: children)
        compound.isSuspended = true
        compound.start()
        #expect(
            withoutAges(compound) == """
                “Sync”: executing, 0 of 2 children have ended, suspended
                  “a”: ready, but the children are suspended
                  “b”: ready, but the children are suspended
                """)
        compound.isSuspended = false
        await settled(
            compound,
            """
            “Sync”: executing, 0 of 2 children have ended
              “a”: executing
              “b”: executing
            """)
        await finish(children, of: compound)
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
        await settled(
            compound,
            """
            “Sync”: \(state), 0 of 1 children have ended
              “deaf”: cancelled, executing
            """)
        child.finish()
        try? await compound.finished()
    }

    @Test("The children of a nested compound are listed below it, indented") func nested() async {
        let child = ScriptedOperation.idle("page 1")
        let inner = CompoundOperation(name: "pages", operations: [child, ScriptedOperation.idle("page 2")])
        inner.maxConcurrentOperationCount = 1
        let last = ScriptedOperation.idle("last")
        last.addDependency(inner)
        let compound = CompoundOperation(name: "Sync", operations: [inner, last])
        compound.start()
        await settled(
            compound,
            """
            “Sync”: executing, 0 of 2 children have ended
              “pages”: executing, 0 of 2 children have ended
                “page 1”: executing
                “page 2”: ready, but the limit of 1 is reached
              “last”: waiting for “pages”, which is executing
            """)
        await finish([child], of: compound)
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
    }

    @Test("A child that has not started says what it is inside of, and a name is on one line") func childAlone() {
        let child = ScriptedOperation("a\nb\u{1b}")
        let compound = CompoundOperation(name: "Sync", operations: [child])
        #expect(child.debugDescription == #"“a\nb\u{1B}”: not started, inside “Sync”"#)
        #expect(withoutAges(compound).hasSuffix(#"“a\nb\u{1B}”: not started"#))
    }

    @Test("A delay says how long it is") func delay() {
        let pause = DelayOperation(for: .seconds(5_000), name: "pause")
        pause.start()
        #expect(withoutAges(pause) == "“pause”: executing, waiting \(Duration.seconds(5_000).shortText)")
        pause.cancel()
    }

    @Test("A macro names its steps and what they wait for") func macro() async throws {
        let first = IOOperation<Int, Int>()
        first.name = "first"
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
        let gate = ScriptedOperation.idle("gate")
        first.addDependency(gate)
        macro.start()
        #expect(
            withoutAges(macro) == """
                “Macro”: executing, 0 of 2 steps have ended
                  “first”: waiting for “gate”, which has not been started
                  “second”: waiting for “first”, which waits for “gate”, which has not been started
                """)
        macro.cancel()
        gate.start()
        gate.finish()
        try? await macro.finished()
    }

    @Test("A mapped operation describes its source") func mapped() async throws {
        let begun = Gate()
        let source = Step<Int, Int>("load") { _, _ in begun.open() }
        let mapped = source.map { $0 + 1 }.with(input: 1)
        #expect(withoutAges(mapped) == "“load”: not started, 1 steps\n  “load”: not started")
        mapped.start()
        await begun.opened()
        #expect(
            withoutAges(mapped) == "“load”: executing, 0 of 1 steps have ended\n  “load”: executing")
        source.finish(with: 1)
        #expect(try await mapped.value == 2)
    }

    @Test("A macro or waterfall that was continued by `then` is described without parts") func continued() {
        let macro = MacroOperation(IOBlockOperation<Int, Int>(name: "first") { $0 })
        macro.name = "Macro"
        _ = macro.then(IOBlockOperation<Int, Int>(name: "second") { $0 })
        #expect(withoutAges(macro) == "“Macro”: not started")
        let waterfall = Waterfall<Int, Int>(name: "Falls").then { $0 }
        _ = waterfall.then { $0 }
        #expect(withoutAges(waterfall) == "“Falls”: not started")
    }

    @Test("A waterfall says how many of its jobs have started, which one runs and whether it is suspended")
    func waterfall() async throws {
        let gate = Gate()
        let made = TaskOperation(name: "made") {
            await gate.opened()
            return 7
        }
        let waterfall = Waterfall<Int, Int>(name: "Falls").then { $0 + 1 }.thenRun { _ in made }.then { $0 }
        waterfall.name = "Falls"
        waterfall.input = 1
        #expect(withoutAges(waterfall) == "“Falls”: not started, 0 of 3 jobs have started")
        waterfall.start()
        await settled(waterfall, "“Falls”: executing, 2 of 3 jobs have started\n  “made”: executing")
        waterfall.isSuspended = true
        #expect(withoutAges(waterfall).hasPrefix("“Falls”: executing, 2 of 3 jobs have started, suspended\n"))
        waterfall.isSuspended = false
        gate.open()
        #expect(try await waterfall.value == 7)
    }

}
