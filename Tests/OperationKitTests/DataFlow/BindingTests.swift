import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Values that flow between operations of any class.
@Suite("Bindings", .hangGuard) struct BindingTests {
    final class Fetch: AsyncOperation, @unchecked Sendable {
        var users: [String] = []
        let failure: (any Error)?

        init(_ failure: (any Error)? = nil) {
            self.failure = failure
            super.init()
            name = "fetch"
        }

        override func main() {
            elsewhere {
                self.users = ["Ada", "Grace"]
                self.finish(withError: self.failure)
            }
        }
    }

    final class Process: AsyncOperation, @unchecked Sendable {
        var users: [String] = []
        var first: String?
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
        override func main() { if !isCancelled { users = ["Ada"] } }
    }

    func run(_ operations: [Operation]) async {
        await onThread {
            let queue = OperationQueue()
            queue.addOperations(operations, waitUntilFinished: true)
        }
    }

    @Test("A value that is not optional is handed over to a property that is") func optionalProperty() async {
        let (name, process) = (TaskOperation(name: "name") { "Ada" }, Process())
        process.bind(\.first, to: name, \.displayedName)
        await run([process, name])
        #expect(process.first == "name")
    }

    @Test("A bound property is handed over after the source has finished and before the target's work")
    func property() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        #expect(process.dependencies == [fetch])
        await run([process, fetch])
        #expect(process.log.events == ["main [\"Ada\", \"Grace\"]"] && process.error == nil)
    }

    @Test("A plain `Operation` can be the source of a binding") func plainSource() async {
        let (fetch, process) = (PlainFetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        await run([process, fetch])
        #expect(process.log.events == ["main [\"Ada\"]"])
    }

    @Test("A failed source hands nothing over; the target ends with an error that wraps its error")
    func failedSource() async throws {
        let (fetch, process) = (Fetch(TestError.first), Process())
        process.bind(\.users, to: fetch, \.users)
        await run([process, fetch])
        #expect(process.log.events.isEmpty && process.users.isEmpty)
        let error = try #require(process.error)
        guard case DependencyError.dependencyFailed("process", "fetch", TestError.first) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(
            ((error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError)?.domain
                == (TestError.first as NSError).domain)
        #expect(error.localizedDescription.contains("“process”") && error.localizedDescription.contains("“fetch”"))
    }

    @Test(
        "A cancelled source hands nothing over; the target ends with an error that says so", arguments: [true, false])
    func cancelledSource(isPlain: Bool) async throws {
        let process = Process()
        let fetch: Operation
        if isPlain {
            let plain = PlainFetch()
            process.bind(\.users, to: plain, \.users)
            fetch = plain
        } else {
            let typed = Fetch()
            process.bind(\.users, to: typed, \.users)
            fetch = typed
        }
        fetch.name = "fetch"
        fetch.cancel()
        await run([process, fetch])
        #expect(process.log.events.isEmpty)
        guard case DependencyError.dependencyFailed("process", "fetch", is CancellationError)? = process.error else {
            Issue.record("\(String(describing: process.error))")
            return
        }
    }

    @Test("A source that is cancelled but succeeds hands its value over") func cancelledButSucceeds() async {
        let fetch = Fetch()
        let process = Process()
        process.bind(\.users, to: fetch, \.users)
        fetch.start()
        fetch.cancel()
        // Not `addOperation`: the source may finish during the addition, which Foundation may not notice on Linux.
        try? await OperationQueue().run(process)
        #expect(process.users == ["Ada", "Grace"] && process.error == nil)
    }

    @Test(
        "The closure of a binding runs whether its source has succeeded or failed, and decides",
        arguments: [nil, TestError.first]
    )
    func closure(failure: TestError?) async {
        let (fetch, process) = (Fetch(failure), Process())
        process.bind(to: fetch) { process, fetch in
            process.log.add("transfer \(text(fetch.error))")
            process.users = ["default"]
        }
        await run([process, fetch])
        #expect(process.log.events == ["transfer \(text(failure))", "main [\"default\"]"])
    }

    @Test("An error that the closure of a binding throws ends the target without its work")
    func throwingClosure() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { _, _ in throw TestError.second }
        await run([process, fetch])
        #expect(process.log.events.isEmpty && text(process.error) == "second")
    }

    @Test("The closure of a binding may finish the target: it ends without its work or further transfers")
    func finishingClosure() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { process, _ in process.finish() }
        process.bind(to: fetch) { process, _ in process.log.add("too late") }
        await run([process, fetch])
        #expect(process.log.events.isEmpty && process.error == nil && process.isFinished)
    }

    /// Writes down what is handed over to it, and whether that happens on the thread that starts it.
    private final class Traced: AsyncOperation, @unchecked Sendable {
        let log: EventLog
        var starter: ObjectIdentifier?
        var value = "" { didSet { note(value) } }

        init(_ log: EventLog) {
            self.log = log
            super.init()
        }

        func note(_ event: String) { log.add("\(event) \(ObjectIdentifier(Thread.current) == starter)") }

        override func main() {
            note("main")
            finish()
        }
    }

    private final class Source: AsyncOperation, @unchecked Sendable {
        let value: String
        init(_ value: String) { self.value = value }
        override func main() { elsewhere { self.finish() } }
    }

    @Test("Bindings are carried out in the order in which they were made, on the thread that starts the target")
    func order() async {
        let log = EventLog()
        let (one, two, three, target) = (Source("one"), Source("two"), Source("three"), Traced(log))
        target.bind(\.value, to: three, \.value)
        target.bind(to: one) { target, one in target.note(one.value) }
        target.bind(\.value, to: two, \.value)
        await run([one, two, three])
        await onThread {
            target.starter = ObjectIdentifier(Thread.current)
            target.start()
        }
        #expect(log.events == ["three true", "one true", "two true", "main true"])
    }

    @Test("A target that is cancelled before its start takes nothing and does not run") func cancelledTarget() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { process, _ in process.log.add("transfer") }
        process.cancel()
        await run([process, fetch])
        #expect(process.log.events.isEmpty && process.error is CancellationError)
    }

    @Test("A target that is cancelled during a transfer ends, with neither `main()` nor `didCancel()`")
    func cancelledDuringATransfer() async {
        let log = EventLog()
        let fetch = Fetch()
        let target = ScriptedOperation(
            main: { _ in log.add("main") },
            didCancel: { _ in log.add("didCancel") })
        target.bind(to: fetch) { target, _ in target.cancel() }
        target.bind(to: fetch) { _, _ in log.add("transfer") }
        await run([target, fetch])
        #expect(log.events.isEmpty && target.error is CancellationError)
    }

    @Test("A target that is started by hand before its source has finished ends with an error that says so")
    func startedEarly() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        process.start()
        guard case DependencyError.dependencyUnfinished("process", "fetch")? = process.error else {
            Issue.record("\(String(describing: process.error))")
            return
        }
        await run([fetch])
    }

    #if os(Linux) || os(macOS)
    @Test("Bindings compile in the Swift 5 mode and in the Swift 6 mode of a client")
    func languageModes() async throws {
        let code = [
            "final class Fetch: Operation, @unchecked Sendable { var users: [String] = [] }",
            "final class Process: AsyncOperation, @unchecked Sendable { var users: [String] = []; var first: String? }",
            "let (fetch, process) = (Fetch(), Process())",
            "process.bind(\\.users, to: fetch, \\.users)",
            "process.bind(\\.first, to: fetch, \\.users.description)",
            "process.bind(to: fetch) { process, fetch in process.users = fetch.users }",
        ]
        for version in ["5", "6"] {
            let messages = try await TypeChecker().check(
                [CodeBlock(file: "Client.swift", line: 1, code: code)], languageMode: version)
            #expect(messages == nil, "\(messages ?? "")")
        }
    }
    #endif

    @Test("Bound operations and the closures of their bindings are released, run, cancelled or dropped") func releases()
        async
    {
        let tracker = LeakTracker()
        for moment in ["run", "cancel", "drop"] {
            let (fetch, process) = (tracker.track(Fetch()), tracker.track(Process()))
            let token = tracker.token("closure")
            process.bind(to: fetch) { _, _ in token.use() }
            process.bind(\.users, to: fetch, \.users)
            if moment == "cancel" { process.cancel() }
            if moment != "drop" { await run([process, fetch]) }
        }
        await tracker.expectAllReleased()
    }

    @Test("The closure of a binding is released right after its call, before the next one is called")
    func releasesAfterCall() async {
        let (tracker, log) = (LeakTracker(), EventLog())
        let fetch = Fetch()
        let process = ScriptedOperation("process") {
            log.add("main \(tracker.alive)")
            $0.finish()
        }
        do {
            let (one, two) = (tracker.token("one"), tracker.token("two"))
            process.bind(to: fetch) { _, _ in one.use() }
            process.bind(to: fetch) { _, _ in log.add("\(two.use()) \(tracker.alive)") }
        }
        await run([process, fetch])
        #expect(log.events == ["() [\"two\"]", "main []"])
    }

    @Test("A long chain of bound operations is freed without recursion") func longChain() async {
        await onThread(stackSize: workerStackSize) {
            var last: AsyncOperation = AsyncOperation()
            for _ in 0..<TestExtent.choose(20_000, long: 200_000) {
                let next = AsyncOperation()
                next.bind(to: last) { _, _ in }
                last = next
            }
        }
    }

    // MARK: - Compounds

    @Test("A compound is handed its values before its children start") func compound() async {
        let log = EventLog()
        let fetch = Fetch()
        let compound = CompoundOperation(operations: [BlockOperation { log.add("child") }])
        compound.bind(to: fetch) { _, fetch in log.add("transfer \(fetch.users.count)") }
        await run([compound, fetch])
        #expect(log.events == ["transfer 2", "child"] && compound.error == nil)
    }

    enum Requirement: CaseIterable { case requireSuccess, keyPaths, closure }

    @Test(
        "A compound whose binding or required success fails runs no child, and ends after its children",
        arguments: Requirement.allCases
    )
    func failedCompound(requirement: Requirement) async {
        let log = EventLog()
        let fetch = Fetch(TestError.first)
        let child = ScriptedOperation.logged(log)
        let compound = CompoundOperation(operations: [child])
        compound.asyncCompletionBlock = { _ in log.add("compound, child finished: \(child.isFinished)") }
        switch requirement {
        case .requireSuccess: compound.requireSuccess(of: fetch)
        case .keyPaths: compound.bind(\.name, to: fetch, \.name)
        case .closure: compound.bind(to: fetch) { _, _ in throw TestError.second }
        }
        await run([compound, fetch])
        #expect(log.events == ["asyncCompletionBlock cancelled", "compound, child finished: true"])
        #expect(compound.error is DependencyError || (requirement == .closure && text(compound.error) == "second"))
    }

    @Test("Children of a compound can be bound to each other") func children() async throws {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        let compound = CompoundOperation(operations: [process, fetch])
        try await OperationQueue().run(compound)
        #expect(process.users.count == 2)
    }
}

extension Operation {
    fileprivate var displayedName: String { name ?? "" }
}
