import OperationKitTestSupport

@testable import OperationKit

@Suite("Delivery of events", .hangGuard) struct EventDeliveryTests {
    @Test("An event that a method of an observer causes is delivered after that has returned") func nested() {
        let log = EventLog()
        let other = ScriptedOperation.idle("other")
        other.addObserver(EventRecorder { _, event in log.add("\(event)") })
        let operation = ScriptedOperation.idle("work")
        operation.addObserver(
            EventRecorder { operation, event in
                log.add("\(event)")
                if event.isRunning {
                    operation.cancel()
                    other.cancel()
                    other.start()
                    operation.finish()
                    #expect(operation.isFinished && other.isFinished)
                }
                log.add("returned")
            })
        operation.start()
        #expect(
            log.events == [
                "“work” started", "returned", "“work” runs", "returned", "“work” was cancelled", "returned",
                "“work” finished", "returned", "“other” was cancelled", "“other” finished as cancelled",
            ])
    }

    @Test("What happens while another thread delivers is left to that thread, and does not wait for it")
    func otherThread() async {
        let delivery = HeldWork()
        let threads = Shared<[ObjectIdentifier]>([])
        let listener = EventRecorder { _, event in
            threads.change { $0.append(ObjectIdentifier(Thread.current)) }
            guard event.isRunning else { return }
            delivery()
        }
        let operation = ScriptedOperation("work", main: { _ in }, didCancel: { $0.finish() })
        operation.addObserver(listener)
        async let delivering = onThread {
            operation.start()
            return ObjectIdentifier(Thread.current)
        }
        await delivery.begun.opened()
        // The thread that would call `main()` next is in the observer.
        operation.cancel()
        #expect(operation.isCancelled && listener.events.count == 2)
        delivery.mayEnd.open()
        let thread = await delivering
        #expect(
            listener.events == [
                "work: started", "work: running", "work: cancelled", "work: finished: cancelled",
            ])
        #expect(threads.value == Array(repeating: thread, count: 4))
    }

    @Test("Observers of a composite see the end of a child whose delivery another thread holds up, after its own end")
    func heldUp() async throws {
        let delivery = HeldWork()
        let child = ScriptedOperation.idle("child")
        child.addObserver(
            EventRecorder { _, event in
                guard case .cancelled = event.kind else { return }
                delivery()
            })
        let compound = CompoundOperation(name: "compound", operations: [child])
        let listener = EventRecorder()
        compound.addObserver(listener)
        OperationQueue().addOperation(compound)
        await eventually("the child does not execute") { listener.events.contains("child: running") }
        async let cancelling: Void = onThread { child.cancel() }
        await delivery.begun.opened()
        child.finish()
        try await compound.finished()
        delivery.mayEnd.open()
        await cancelling
        #expect(listener.events.suffix(2) == ["compound: finished", "child: finished"])
    }

    @Test("An observer that was slow once is given what has queued up meanwhile, in linear time") func backlog() async {
        let count = TestExtent.choose(8_000, long: 200_000)
        let delivery = HeldWork()
        let seen = Shared(0)
        let operation = ScriptedOperation.idle("work")
        operation.addObserver(
            EventRecorder { _, event in
                if event.isRunning {
                    delivery()
                }
                if case .retrying(let attempt, _, _) = event.kind { seen.change { if $0 == attempt { $0 += 1 } } }
            })
        async let delivering: Void = onThread { operation.start() }
        await delivery.begun.opened()
        for number in 0..<count { operation.emit(.retrying(attempt: number, error: TestError.first, delay: .zero)) }
        delivery.mayEnd.open()
        await delivering
        #expect(seen.value == count)
        operation.finish()
    }

    @Test(
        "While threads cancel and finish an operation and change its observers, each observer sees an order that is possible"
    )
    func race() async {
        struct Subject {
            let compound: CompoundOperation
            let child = ScriptedOperation("child", main: { _ in }, didCancel: { $0.finish() })
            let isOver = DispatchSemaphore(value: 0)
            let first: EventRecorder
            let second = EventRecorder()

            init() {
                compound = CompoundOperation(name: "compound", operations: [child])
                first = EventRecorder { [isOver] _, event in
                    if event.isEnd, event.name == "compound" { isOver.signal() }
                }
                compound.addObserver(first)
            }
        }
        let seed = UInt64.random(in: 0...(.max))
        await OperationKitTestSupport.race(
            rounds: 600, seed: seed, prepare: { _ in Subject() },
            [
                { $0.compound.start() },
                { $0.child.cancel() },
                { $0.child.finish() },
                { subject in
                    subject.child.addObserver(subject.second)
                    subject.child.removeObserver(subject.second)
                    subject.compound.addObserver(subject.second)
                },
            ]
        ) { subject, round in
            #expect(subject.isOver.wait(timeout: .now() + hangTimeout) == .success)
            let possible = [
                "child: cancelled", "child: started", "child: running", "child: cancelled", "child: finished",
                "child: finished: cancelled",
            ]
            let all = subject.first.events
            let ofChild = all.filter { $0.hasPrefix("child: ") }
            #expect(isOrdered(ofChild, in: possible), "\(ofChild), seed \(seed), round \(round)")
            #expect(ofChild.last?.hasPrefix("child: finished") == true, "\(all), seed \(seed), round \(round)")
            #expect(Set(all).count == all.count, "\(all), seed \(seed), round \(round)")
            // What two operations do at the same time, observers may see in different orders.
            for name in ["child: ", "compound: "] {
                let some = subject.second.events.filter { $0.hasPrefix(name) }
                #expect(
                    isOrdered(some, in: all.filter { $0.hasPrefix(name) }),
                    "\(some), \(all), seed \(seed), round \(round)")
            }
        }
    }

    #if DEBUG
    @Test("Observers of a composite see all that happens to an operation after another thread has added it")
    func additions() async {
        let lost = await onThread { () -> [String] in
            var lost: [String] = []
            for place in 0..<Interruption.bound {
                let child = ScriptedOperation.idle("child")
                let compound = CompoundOperation(name: "compound")
                let (own, outer) = (EventRecorder(), EventRecorder())
                child.addObserver(own)
                compound.addObserver(outer)
                let interruption = Interruption(at: place, heedsOthers: true) {
                    #expect(answersOnAnotherThread { try? compound.addOperation(child) })
                }
                SchedulingProbe.observed(by: interruption) {
                    child.start()
                    child.cancel()
                    child.finish()
                }
                if !interruption.hasRun { return place > 10 ? lost : ["only \(place) places"] }
                let expected = own.events.drop { $0 != "child: added to compound" }
                if outer.events != Array(expected) {
                    lost.append("place \(place): \(outer.events) of \(own.events)")
                }
            }
            return lost
        }
        #expect(lost == [])
    }
    #endif

    @Test("The end is the last one of the events, also if another thread adds one at that time", arguments: [1, 100])
    func endIsLast(limit: Int) async {
        let rounds = TestExtent.choose(100, long: 10_000)
        let seed = UInt64.random(in: 0...(.max))
        var random = SplitMix64(seed: seed)
        // How long the event is held up. It goes to where the event is added when the end is.
        var spin = 100
        for round in 0..<rounds {
            let child = ScriptedOperation("child")
            let compound = CompoundOperation(name: "compound", operations: [child])
            let (isHeldUp, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let turns = max(spin + Int.random(in: -20...20, using: &random), 0)
            compound.addObserver(
                EventRecorder { [weak compound] operation, event in
                    guard event.name == "child", case .cancelled = event.kind else { return }
                    isHeldUp.signal()
                    while compound?.isFinished == false {}
                    for _ in 0..<turns { _ = operation.isCancelled }
                })
            let events = compound.events(bufferingNewest: limit)
            await onThread {
                Thread.detachNewThread {
                    child.cancel()
                    isOver.signal()
                }
                isHeldUp.wait()
                compound.start()
                isOver.wait()
            }
            var all: [String] = []
            for await event in events { all.append("\(event)") }
            #expect(all.last == "“compound” finished", "\(all), seed \(seed), round \(round)")
            spin += all.contains { $0.contains("child") } ? 1 : -1
        }
    }

    @Test("A task that begins to wait for an operation whose end observers are being told of waits for that, too")
    func awaitedMeanwhile() async throws {
        let (began, goOn) = (Gate(), Gate())
        let operation = ScriptedOperation.idle("load")
        operation.addObserver(
            EventRecorder { _, event in
                guard event.isEnd else { return }
                began.open()
                goOn.pass()
            })
        operation.start()
        try await expectWait(for: operation, heldUpSince: began, until: goOn)
    }

    /// Whether the elements come in an order, some of whose elements may be missing.
    private func isOrdered(_ elements: [String], in order: [String]) -> Bool {
        var rest = order[...]
        return elements.allSatisfy { element in
            guard let index = rest.firstIndex(of: element) else { return false }
            rest = rest[(index + 1)...]
            return true
        }
    }

    @Test("Many observed composites inside each other end in order, on a small stack") func deep() async {
        let count = TestExtent.choose(300, long: 1_000)
        let ends = await onThread(stackSize: workerStackSize) { () -> [String] in
            let leaf = ScriptedOperation("0")
            var operation: AsyncOperation = leaf
            for depth in 1...count { operation = CompoundOperation(name: "\(depth)", operations: [operation]) }
            let isOver = DispatchSemaphore(value: 0)
            let listener = EventRecorder { _, event in
                if event.isEnd, event.name == "\(count)" { isOver.signal() }
            }
            operation.addObserver(listener)
            operation.start()
            // The end is delivered after the completion block was called.
            _ = isOver.wait(timeout: .now() + hangTimeout)
            return listener.events.filter { $0.hasSuffix("finished") }
        }
        #expect(ends == (0...count).map { "\($0): finished" })
    }
}
