import OperationKitTestSupport

@testable import OperationKit

@Suite("Compound: strangers on the private queue", .hangGuard) struct CompoundGuestTests {
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

    @Test("Operations that a child adds to its queue take no child's place, and the compound ends without them")
    func strangersThatStay() async throws {
        let (work, ended) = (HeldWork(), Shared(0))
        try await withQueueOfChild { queue in
            for _ in 0..<3 {
                queue.addOperation {
                    work()
                    ended.change { $0 += 1 }
                }
            }
            work.begun.pass()
        }
        #expect(ended.value == 0)
        work.mayEnd.open()
        await eventually("strangers have not run") { ended.value == 3 }
    }

    @Test("A child reads back what it has set on its queue, or what a new queue answers, and holds up no child by that")
    func settings() async throws {
        let scheduling = try await withQueueOfChild { queue in
            let usual = OperationQueue().maxConcurrentOperationCount
            #expect(!queue.isSuspended && queue.maxConcurrentOperationCount == usual)
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
        let (stranger, compound) = (BlockOperation {}, CompoundOperation(maxConcurrentOperationCount: 1))
        stranger.addDependency(compound)
        try compound.addOperation(name: "child") { [unowned compound] in
            OperationQueue.current?.addOperation(stranger)
            if isCancelled { compound.cancel() }
        }
        try compound.addOperation(BlockOperation {})
        await Start.byHand(compound)
        await eventually("the stranger has not run") { stranger.isFinished }
    }

    @Test("A queue that was changed when its compound was gone is not that of another one") func keptQueue() {
        var kept: CompositeQueue? = CompositeQueue.make()
        kept?.retire()
        kept?.isSuspended = true
        kept = nil
        let others = (0..<20).map { _ in CompositeQueue.make() }
        #expect(others.allSatisfy { !$0.isSuspended })
    }

    @Test("A queue that had a quality of service of its own is not that of another compound") func usedQueue() {
        var queue: CompositeQueue? = CompositeQueue()
        weak let reference = queue
        for quality in [QualityOfService.background, .default] { queue?.childQualityOfService = quality }
        queue?.retire()
        queue = nil
        #expect(reference == nil)
    }

    @Test("What a child adds to its queue, also a barrier, runs on the queue it has set") func added() async throws {
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

    @Test("A child that waits for its queue waits for what it has added, not for itself") func waiting() async throws {
        let (log, isWaiting) = (EventLog(), Gate())
        let child = ScriptedOperation { child in
            child.finish()
            OperationQueue.current?.waitUntilAllOperationsAreFinished()
            OperationQueue.current?.addOperation {
                isWaiting.pass()
                log.add("stranger")
            }
            isWaiting.open()
            OperationQueue.current?.waitUntilAllOperationsAreFinished()
            log.add("waited")
        }
        try await OperationQueue().run(CompoundOperation(operations: [child], maxConcurrentOperationCount: 1))
        await eventually("it does not end") { log.events == ["stranger", "waited"] }
    }

    @Test("A queue refuses to run what a child has added to it already") func runningAgain() async throws {
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
    @Test("A compound has threads of its quality of service") func threadsOfQualityOfService() async throws {
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
