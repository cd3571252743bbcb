import OperationKitTestSupport

@Suite("Bindings", .hangGuard) struct BindingTests {
    final class Fetch: AsyncOperation, @unchecked Sendable {
        private(set) var users: [String] = []
        private(set) var found: [String]?
        private(set) var note: String?
        var last: String? { found?.last }
        let failure: (any Error)?

        init(_ failure: (any Error)? = nil, finds found: [String]? = ["Ada"]) {
            (self.failure, self.found) = (failure, found)
            super.init()
            name = "fetch"
        }

        override func main() {
            elsewhere {
                self.users = self.found ?? []
                self.finish(withError: self.failure)
            }
        }
    }

    final class Process: AsyncOperation, @unchecked Sendable {
        var users: [String] = []
        var first: String? = "none"
        var title = "none"
        var heading: String {
            get { title }
            set { title = newValue }
        }
        let log: EventLog

        init(_ log: EventLog = EventLog()) {
            self.log = log
            super.init()
            name = "process"
        }

        override func main() {
            log.add("main \(users)")
            finish()
        }
    }

    final class PlainFetch: Operation, @unchecked Sendable {
        var users: [String] = []
        let note: String? = nil
        override func main() { if !isCancelled { users = ["Ada"] } }
    }

    /// The ways in which a target takes a value from a source that has to succeed, or only requires that.
    enum Form: CaseIterable, Sendable {
        case property, optionalProperty, plainProperty, requirement

        /// Returns the source, with the name “fetch”.
        func bind(_ process: Process, failure: TestError? = nil) -> Operation {
            let (fetch, plain) = (Fetch(failure), PlainFetch())
            plain.name = "fetch"
            switch self {
            case .property: process.bind(\.users, to: fetch, \.users)
            case .optionalProperty: process.bind(\.users, to: fetch, \.found)
            case .plainProperty: process.bind(\.users, to: plain, \.users)
            case .requirement: process.requireSuccess(of: fetch)
            }
            return self == .plainProperty ? plain : fetch
        }
    }

    @Test("A bound property is handed over after the source and before the target's work", arguments: Form.allCases)
    func property(form: Form) async {
        let process = Process()
        let fetch = form.bind(process)
        #expect(process.dependencies == [fetch])
        await runAll([process, fetch])
        #expect(process.log.events == [form == .requirement ? "main []" : "main [\"Ada\"]"] && process.error == nil)
    }

    @Test("A value that is not optional is handed over to a property that is") func optionalProperty() async {
        let (name, process) = (TaskOperation(name: "name") { "Ada" }, Process())
        process.bind(\.first, to: name, \.displayedName)
        await runAll([process, name])
        #expect(process.first == "name")
    }

    @Test("The error of a target wraps that of its source", arguments: Form.allCases, [TestError.first, nil])
    func failedSource(form: Form, failure: TestError?) async {
        // A plain operation has no error.
        if form == .plainProperty, failure != nil { return }
        let process = Process()
        let fetch = form.bind(process, failure: failure)
        if failure == nil { fetch.cancel() }
        await runAll([process, fetch])
        #expect(brief(process.error) == "process after fetch: \(failure == nil ? "cancelled" : "first")")
        #expect(process.log.events.isEmpty && process.users.isEmpty)
    }

    @Test("A source that is cancelled but succeeds hands its value over") func cancelledButSucceeds() async {
        let process = Process()
        let fetch = Form.property.bind(process)
        fetch.start()
        fetch.cancel()
        // Not `addOperation`: the source may finish during the addition, which Foundation may not notice on Linux.
        try? await OperationQueue().run(process)
        #expect(process.users == ["Ada"] && process.error == nil)
    }

    @Test("The closure of a binding runs however its source has ended, and decides", arguments: [nil, TestError.first])
    func closure(failure: TestError?) async {
        let (fetch, process) = (Fetch(failure), Process())
        process.bind(to: fetch) { process, fetch in
            process.log.add("transfer \(text(fetch.error))")
            process.users = ["default"]
        }
        await runAll([process, fetch])
        #expect(process.log.events == ["transfer \(text(failure))", "main [\"default\"]"])
    }

    @Test(
        "The closure of a binding may end its target, which then neither works nor takes anything else",
        arguments: ["success", "second", "cancelled"])
    func endingClosure(outcome: String) async {
        let (fetch, log) = (Fetch(), EventLog())
        let target = ScriptedOperation(main: { _ in log.add("main") }, didCancel: { _ in log.add("didCancel") })
        target.bind(to: fetch) { target, _ in
            switch outcome {
            case "success": target.finish()
            case "second": throw TestError.second
            default: target.cancel()
            }
        }
        target.bind(to: fetch) { _, _ in log.add("transfer") }
        await runAll([target, fetch])
        #expect(log.events.isEmpty && text(target.error) == outcome && target.isFinished)
    }

    @Test("Bindings are carried out in their order, on the thread that starts the target") func order() async {
        let (log, starter) = (EventLog(), Shared<Thread?>(nil))
        let note: @Sendable (String) -> Void = { log.add("\($0) \(Thread.current === starter.value)") }
        let sources = ["one", "two", "three"].map { ScriptedOperation($0) }
        let target = ScriptedOperation {
            note("main")
            $0.finish()
        }
        for index in [2, 0, 1] { target.bind(to: sources[index]) { _, source in note(source.displayedName) } }
        await runAll(sources)
        await onThread {
            starter.value = Thread.current
            target.start()
        }
        #expect(log.events == ["three true", "one true", "two true", "main true"])
        // A thread holds what it runs.
        starter.value = nil
    }

    @Test("A target that is cancelled before its start takes nothing and does not run") func cancelledTarget() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { process, _ in process.log.add("transfer") }
        process.cancel()
        await runAll([process, fetch])
        #expect(process.log.events.isEmpty && process.error is CancellationError)
    }

    @Test("A source that has not finished, or is gone, is an error that names it", arguments: ["fetch", "gone", nil])
    func unfinishedSource(name: String?) {
        let (fetch, process) = (Fetch(), Process())
        if name == "fetch" {
            process.bind(\.users, to: fetch, \.users)
        } else {
            let source = ScriptedOperation(name)
            process.bind(to: source) { _, _ in Issue.record("It is carried out.") }
            process.removeDependency(source)
        }
        process.start()
        #expect(brief(process.error) == "process before \(name ?? "ScriptedOperation")")
    }

    @Test("Bound operations and closures of bindings are released, however they end") func releases() async {
        let tracker = LeakTracker()
        for moment in ["run", "cancel", "drop"] {
            let (fetch, process) = (tracker.track(Fetch()), tracker.track(Process()))
            process.bind(to: fetch) { [token = tracker.token("closure")] _, _ in token.use() }
            process.bind(\.users, to: fetch, \.users)
            if moment == "cancel" { process.cancel() }
            if moment != "drop" { await runAll([process, fetch]) }
        }
        await tracker.expectAllReleased()
    }

    @Test("The closure of a binding is released before the next one is called") func releasesAfterCall() async {
        let (tracker, log, fetch) = (LeakTracker(), EventLog(), Fetch())
        let process = ScriptedOperation("process") {
            log.add("main \(tracker.alive)")
            $0.finish()
        }
        process.bind(to: fetch) { [token = tracker.token("one")] _, _ in token.use() }
        process.bind(to: fetch) { [token = tracker.token("two")] _, _ in log.add("\(token.use()) \(tracker.alive)") }
        await runAll([process, fetch])
        #expect(log.events == ["() [\"two\"]", "main []"])
    }

    @Test("A compound is handed its values before its children start, bound or not") func compound() async {
        let (log, first) = (EventLog(), Fetch())
        let (fetch, process) = (Fetch(), Process(log))
        process.bind(\.users, to: fetch, \.users)
        let compound = CompoundOperation(operations: [process, fetch])
        compound.bind(to: first) { _, fetch in log.add("transfer \(fetch.users.count)") }
        await runAll([compound, first])
        #expect(log.events == ["transfer 1", "main [\"Ada\"]"] && compound.error == nil)
    }

    enum Requirement: CaseIterable { case requireSuccess, keyPaths, closure }

    @Test("A compound whose binding fails runs no child, and ends after them", arguments: Requirement.allCases)
    func failedCompound(requirement: Requirement) async {
        let (log, fetch) = (EventLog(), Fetch(TestError.first))
        let child = ScriptedOperation.logged(log)
        let compound = CompoundOperation(name: "compound", operations: [child])
        compound.asyncCompletionBlock = { _ in log.add("compound, child finished: \(child.isFinished)") }
        switch requirement {
        case .requireSuccess: compound.requireSuccess(of: fetch)
        case .keyPaths: compound.bind(\.name, to: fetch, \.name)
        case .closure: compound.bind(to: fetch) { _, _ in throw TestError.second }
        }
        await runAll([compound, fetch])
        #expect(log.events == ["asyncCompletionBlock cancelled", "compound, child finished: true"])
        #expect(brief(compound.error) == (requirement == .closure ? "second" : "compound after fetch: first"))
    }
}

extension Operation {
    fileprivate var displayedName: String { name ?? "" }
}
