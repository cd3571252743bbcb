import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: strangers on the private queue", .hangGuard) struct CompoundGuestTests {
    @Test("Operations that a child adds to its queue take no child's place, and the compound ends without them")
    func strangersThatStay() async throws {
        let (begun, mayEnd) = (Gate(), Gate())
        let ended = Shared(0)
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            BlockOperation {
                for _ in 0..<3 {
                    OperationQueue.current?.addOperation {
                        begun.open()
                        mayEnd.pass()
                        ended.change { $0 += 1 }
                    }
                }
                begun.pass()
            }
            for _ in 0..<8 { BlockOperation {} }
        }
        try await OperationQueue().run(compound)
        #expect(ended.value == 0)
        mayEnd.open()
        await eventually("strangers have not run") { ended.value == 3 }
    }

    /// Runs a child that calls a body with its queue, and others after it. Returns the queue that these have then.
    @discardableResult
    private func withQueueOfChild(_ body: @escaping @Sendable (OperationQueue) -> Void) async throws -> CompositeQueue {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            ThrowingBlockOperation { body(try #require(OperationQueue.current)) }
            AsyncBlockOperation { $0(nil) }
            BlockOperation {}
        }
        compound.qualityOfService = .userInitiated
        let scheduler = try #require(compound.children as? ChildScheduler)
        try await OperationQueue().run(compound)
        return scheduler.queue
    }

    @Test(
        "A child reads back what it has set on its queue, and before that what a new queue answers, and it holds up no child"
    )
    func settings() async throws {
        let scheduling = try await withQueueOfChild { queue in
            #expect(!queue.isSuspended)
            #expect(queue.maxConcurrentOperationCount == OperationQueue().maxConcurrentOperationCount)
            let underlying = DispatchQueue(label: "underlying")
            let before = unsafe queue.underlyingQueue
            unsafe queue.underlyingQueue = underlying
            let after = unsafe queue.underlyingQueue
            #expect(before == nil && after === underlying)
            queue.isSuspended = true
            queue.isSuspended = false
            #expect(!queue.isSuspended)
            queue.isSuspended = true
            queue.maxConcurrentOperationCount = 0
            queue.qualityOfService = .background
            #expect(queue.isSuspended && queue.maxConcurrentOperationCount == 0)
            #expect(queue.qualityOfService == .background)
        }
        #expect(scheduling.childQualityOfService == .userInitiated)
    }

    @Test("A stranger that waits for the compound waits for its end, cancelled or not", arguments: [true, false])
    func strangerThatWaits(isCancelled: Bool) async throws {
        let stranger = BlockOperation {}
        let compound = CompoundOperation(maxConcurrentOperationCount: 1)
        stranger.addDependency(compound)
        try compound.addOperation(
            BlockOperation { [unowned compound] in
                OperationQueue.current?.addOperation(stranger)
                if isCancelled { compound.cancel() }
            })
        try compound.addOperation(BlockOperation {})
        compound.start()
        try? await compound.finished()
        await eventually("the stranger has not run") { stranger.isFinished }
    }

    @Test("A queue that code has kept, and changed when its compound was gone, is not that of another compound")
    func keptQueue() {
        var kept: CompositeQueue? = CompositeQueue.make()
        kept?.retire()
        kept?.isSuspended = true
        kept = nil
        let others = (0..<20).map { _ in CompositeQueue.make() }
        #expect(others.allSatisfy { !$0.isSuspended })
    }

    @Test("What a child adds to its queue, also a barrier, runs beside it, on the dispatch queue that it has set")
    func added() async throws {
        let (log, key, target) = (EventLog(), DispatchSpecificKey<Bool>(), DispatchQueue(label: "target"))
        target.setSpecific(key: key, value: true)
        let add = { @Sendable (name: String) in log.add("\(name) \(DispatchQueue.getSpecific(key: key) == true)") }
        try await withQueueOfChild { queue in
            unsafe queue.underlyingQueue = target
            queue.progress.totalUnitCount = 3
            queue.addOperations(
                [BlockOperation { add("one") }, BlockOperation { add("two") }], waitUntilFinished: true)
            // Its progress counts these, and no children.
            #expect(queue.progress.completedUnitCount == 2)
            queue.addBarrierBlock { add("barrier") }
        }
        await eventually("the barrier has not run") { log.events.count == 3 }
        #expect(Set(log.events.prefix(2)) == ["one true", "two true"] && log.events[2].hasPrefix("barrier"))
    }

    @Test("A child that waits for its queue waits for what was added to it, and not for itself")
    func waiting() async throws {
        let log = EventLog()
        let (begun, mayEnd) = (Gate(), Gate())
        let child = ScriptedOperation { child in
            child.finish()
            OperationQueue.current?.waitUntilAllOperationsAreFinished()
            OperationQueue.current?.addOperation {
                begun.pass()
                log.add("stranger")
            }
            begun.open()
            OperationQueue.current?.waitUntilAllOperationsAreFinished()
            log.add("waited")
            mayEnd.open()
        }
        try await OperationQueue().run(CompoundOperation(operations: [child], maxConcurrentOperationCount: 1))
        await mayEnd.opened()
        #expect(log.events == ["stranger", "waited"])
    }

    @Test("An operation that was added to the queue of a child is an error when that queue is to run it")
    func runningAgain() async throws {
        let found = Shared<OperationQueue?>(nil)
        try await withQueueOfChild { found.value = $0 }
        let queue = try #require(found.value)
        queue.isSuspended = true
        let stranger = BlockOperation {}
        stranger.name = "stranger"
        queue.addOperation(stranger)
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "stranger")) {
            try await queue.run([stranger])
        }
        #expect(OperationDiagnostics.description(of: queue).contains("stranger"))
        queue.isSuspended = false
        try await queue.allOperationsFinished()
        #expect(stranger.isFinished)
    }

    #if os(Linux)
    @Test("A compound has threads of its quality of service, also after others whose queue it could use again")
    func threadsOfQualityOfService() async throws {
        func threadName(_ qualityOfService: QualityOfService) async throws -> String {
            let name = Shared("")
            let block = BlockOperation {
                name.value = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
            }
            let compound = CompoundOperation(operations: [block])
            compound.qualityOfService = qualityOfService
            try await OperationQueue().run(compound)
            return name.value
        }
        let name = try await threadName(.default)
        #expect(try await threadName(.background) != name)
    }
    #endif
}
