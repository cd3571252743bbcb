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

    private func run(_ operations: [Operation]) async {
        await onThread {
            let queue = OperationQueue()
            queue.addOperations(operations, waitUntilFinished: true)
        }
    }

    @Test func aBoundPropertyIsHandedOverBeforeTheWorkBegins() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        #expect(process.dependencies == [fetch])
        await run([process, fetch])
        #expect(process.log.events == ["main [\"Ada\", \"Grace\"]"] && process.error == nil)
    }

    @Test func anOptionalPropertyTakesAValueThatIsNone() async {
        final class Source: AsyncOperation, @unchecked Sendable { let user = "Ada" }
        let (source, process) = (Source(), Process())
        process.bind(\.first, to: source, \.user)
        await run([process, source])
        #expect(process.first == "Ada")
    }

    @Test func typedOperationsAreBoundByInputAndOutput() async throws {
        let source = TaskOperation { 20 }
        let target = Step<Int, Int> { $0.finish(with: $1 + 1) }
        target.bind(\.input, to: source, \.output)
        await run([target, source])
        #expect(target.output == 21)
    }

    @Test func aPlainOperationCanBeTheSource() async {
        let (fetch, process) = (PlainFetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        await run([process, fetch])
        #expect(process.log.events == ["main [\"Ada\"]"])
    }

    @Test func aFailedSourceHandsNothingOverAndTheTargetEndsWithAnErrorThatWrapsItsError() async throws {
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

    @Test(arguments: [true, false]) func aCancelledSourceHandsNothingOver(isPlain: Bool) async throws {
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

    @Test func aSourceThatIsCancelledButSucceedsHandsOver() async {
        let fetch = Fetch()
        let process = Process()
        process.bind(\.users, to: fetch, \.users)
        fetch.start()
        fetch.cancel()
        await run([process])
        #expect(process.users == ["Ada", "Grace"] && process.error == nil)
    }

    @Test(arguments: [nil, TestError.first]) func theClosureFormAlwaysRunsAndDecides(failure: TestError?) async {
        let (fetch, process) = (Fetch(failure), Process())
        process.bind(to: fetch) { process, fetch in
            process.log.add("transfer \(text(fetch.error))")
            process.users = ["default"]
        }
        await run([process, fetch])
        #expect(process.log.events == ["transfer \(text(failure))", "main [\"default\"]"])
    }

    @Test func whatTheClosureThrowsEndsTheTargetWithoutItsWork() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { _, _ in throw TestError.second }
        await run([process, fetch])
        #expect(process.log.events.isEmpty && text(process.error) == "second")
    }

    @Test func theClosureMayFinishTheTarget() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { process, _ in process.finish() }
        process.bind(to: fetch) { process, _ in process.log.add("too late") }
        await run([process, fetch])
        #expect(process.log.events.isEmpty && process.error == nil && process.isFinished)
    }

    @Test func bindingsAreCarriedOutInTheirOrderOnTheStartingThread() async {
        let (one, two, process) = (Fetch(), Fetch(), Process())
        process.bind(to: two) { process, _ in process.log.add("two") }
        process.bind(to: one) { process, _ in process.log.add("one") }
        await run([process, one, two])
        #expect(process.log.events == ["two", "one", "main []"])
    }

    @Test func cancelledBeforeItsStartTheTargetTakesNothing() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(to: fetch) { process, _ in process.log.add("transfer") }
        process.cancel()
        await run([process, fetch])
        #expect(process.log.events.isEmpty && process.error is CancellationError)
    }

    @Test func cancelledDuringATransferTheTargetHasItsHookRunAfterMain() async {
        let log = EventLog()
        let fetch = Fetch()
        let target = ScriptedOperation(
            main: { _ in log.add("main") },
            didCancel: {
                log.add("didCancel")
                $0.finish(withError: CancellationError())
            })
        target.bind(to: fetch) { target, _ in target.cancel() }
        await run([target, fetch])
        #expect(log.events == ["main", "didCancel"] && target.error is CancellationError)
    }

    @Test func startedByHandBeforeTheSourceItSaysSo() async {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        process.start()
        guard case DependencyError.dependencyUnfinished("process", "fetch")? = process.error else {
            Issue.record("\(String(describing: process.error))")
            return
        }
        await run([fetch])
    }

    @Test func aCompoundTakesBindingsBeforeItsChildrenBegin() async {
        let log = EventLog()
        let fetch = Fetch()
        let compound = CompoundOperation(operations: [BlockOperation { log.add("child") }])
        compound.bind(to: fetch) { _, fetch in log.add("transfer \(fetch.users.count)") }
        await run([compound, fetch])
        #expect(log.events == ["transfer 2", "child"] && compound.error == nil)
    }

    @Test func aCompoundWhoseBindingFailsEndsAfterItsChildren() async {
        let log = EventLog()
        let fetch = Fetch(TestError.first)
        let child = ScriptedOperation.logged(log)
        let compound = CompoundOperation(operations: [child])
        compound.requireSuccess(of: fetch)
        await run([compound, fetch])
        #expect(log.events == ["asyncCompletionBlock cancelled"] && child.isFinished && compound.isFinished)
        #expect(compound.error is DependencyError)
    }

    @Test func childrenOfACompoundAreBoundToEachOther() async throws {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        let compound = CompoundOperation(operations: [process, fetch])
        try await OperationQueue().run(compound)
        #expect(process.users.count == 2)
    }

    #if os(Linux) || os(macOS)
    @Test func bindingsCompileInTheSwift5ModeOfAClientToo() async throws {
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

    @Test func bindingsAreReleased() async {
        let tracker = LeakTracker()
        for isRun in [true, false] {
            let (fetch, process) = (tracker.track(Fetch()), tracker.track(Process()))
            let token = tracker.token("closure")
            process.bind(to: fetch) { _, _ in token.use() }
            process.bind(\.users, to: fetch, \.users)
            if isRun { await run([process, fetch]) }
        }
        await tracker.expectAllReleased()
    }

    @Test("The closure of a binding is released right after its call, before the next one is called")
    func theClosureIsReleasedAfterItsCall() async {
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

    @Test func whatItCapturesIsReleasedWhenTheTargetEndsWithoutRunning() async {
        let tracker = LeakTracker()
        let (fetch, process) = (Fetch(), Process())
        do {
            let token = tracker.token("closure")
            process.bind(to: fetch) { _, _ in token.use() }
        }
        process.cancel()
        process.start()
        await tracker.expectAllReleased()
        await run([fetch])
    }

    @Test func aChainOfManyBoundOperationsIsFreedWithoutRecursion() async {
        await onThread(stackSize: workerStackSize) {
            var last: AsyncOperation = AsyncOperation()
            for _ in 0..<TestExtent.choose(20_000, long: 200_000) {
                let next = AsyncOperation()
                next.bind(to: last) { _, _ in }
                last = next
            }
        }
    }

    @Test func aHundredThousandConsumersSeeWhatTheirProducersPublished() async {
        final class Producer: AsyncOperation, @unchecked Sendable {
            var value = 0
            let number: Int
            init(_ number: Int) { self.number = number }
            override func main() {
                value = number
                finish()
            }
        }
        final class Consumer: AsyncOperation, @unchecked Sendable {
            var value = -1
            var seen = -2
            override func main() {
                seen = value
                finish()
            }
        }
        let pairs = (0..<TestExtent.choose(5_000, long: 100_000)).map { (Producer($0), Consumer()) }
        for (producer, consumer) in pairs { consumer.bind(\.value, to: producer, \.value) }
        let compound = CompoundOperation(operations: pairs.flatMap { [$1, $0] })
        await Start.byHand(compound)
        #expect(compound.error == nil)
        #expect(pairs.allSatisfy { $1.seen == $0.number })
    }
}
