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

    @Test("Several operations, and a barrier, that a child adds to its queue run beside it")
    func severalAndBarrier() async throws {
        let log = EventLog()
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            BlockOperation {
                OperationQueue.current?.addOperations(
                    [BlockOperation { log.add("one") }, BlockOperation { log.add("two") }], waitUntilFinished: true)
                OperationQueue.current?.addBarrierBlock { log.add("barrier") }
                log.add("child")
            }
        }
        try await OperationQueue().run(compound)
        await eventually("the barrier has not run") { log.count(of: "barrier") == 1 }
        #expect(Set(log.events.prefix(2)) == ["one", "two"])
    }

    @Test("A child that suspends or limits its queue holds up no child", arguments: [true, false])
    func suspension(isSuspended: Bool) async throws {
        let log = EventLog()
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            BlockOperation {
                if isSuspended {
                    OperationQueue.current?.isSuspended = true
                } else {
                    OperationQueue.current?.maxConcurrentOperationCount = 0
                }
            }
            AsyncBlockOperation { finish in
                log.add("asynchronous")
                finish(nil)
            }
            BlockOperation { log.add("synchronous") }
        }
        try await OperationQueue().run(compound)
        #expect(log.events == ["asynchronous", "synchronous"])
    }

    private func withQueueOfChild(
        limit: Int = 1, _ body: @escaping @Sendable (OperationQueue) -> Void
    ) async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: limit) {
            ThrowingBlockOperation { body(try #require(OperationQueue.current)) }
            BlockOperation {}
        }
        try await OperationQueue().run(compound)
    }

    @Test("A child reads back what it has set on its queue, and before that what a new queue answers")
    func settings() async throws {
        try await withQueueOfChild { queue in
            #expect(!queue.isSuspended)
            #expect(queue.maxConcurrentOperationCount == OperationQueue().maxConcurrentOperationCount)
            queue.isSuspended = true
            queue.maxConcurrentOperationCount = 3
            queue.qualityOfService = .background
            let underlying = DispatchQueue(label: "underlying")
            let before = unsafe queue.underlyingQueue
            unsafe queue.underlyingQueue = underlying
            let after = unsafe queue.underlyingQueue
            #expect(before == nil && after === underlying)
            #expect(queue.isSuspended && queue.maxConcurrentOperationCount == 3)
            #expect(queue.qualityOfService == .background)
            queue.isSuspended = false
            #expect(!queue.isSuspended)
        }
    }

    @Test("A child can give its queue another dispatch queue, on which what it adds runs")
    func underlyingQueue() async throws {
        let key = DispatchSpecificKey<Bool>()
        let target = DispatchQueue(label: "target")
        target.setSpecific(key: key, value: true)
        let seen = Shared<Bool?>(nil)
        try await withQueueOfChild { queue in
            unsafe queue.underlyingQueue = target
            queue.addOperations(
                [BlockOperation { seen.value = DispatchQueue.getSpecific(key: key) }], waitUntilFinished: true)
        }
        #expect(seen.value == true)
    }

    @Test("The quality of service that a child gives its queue is not that of the children after it")
    func qualityOfService() async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            BlockOperation { OperationQueue.current?.qualityOfService = .background }
            BlockOperation {}
        }
        compound.qualityOfService = .userInitiated
        let scheduler = try #require(compound.children as? ChildScheduler)
        try await OperationQueue().run(compound)
        #expect(scheduler.queue.childQualityOfService == .userInitiated)
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

    @Test("The progress of the queue of a child counts what was added to it, and no children")
    func progress() async throws {
        let compound = CompoundOperation(maxConcurrentOperationCount: 1) {
            BlockOperation {
                OperationQueue.current?.progress.totalUnitCount = 2
                OperationQueue.current?.addOperations([BlockOperation {}], waitUntilFinished: true)
            }
            for _ in 0..<4 { BlockOperation {} }
            BlockOperation { #expect(OperationQueue.current?.progress.completedUnitCount == 1) }
        }
        try await OperationQueue().run(compound)
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
