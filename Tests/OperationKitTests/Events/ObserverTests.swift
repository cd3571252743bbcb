import OperationKitTestSupport

@testable import OperationKit

@Suite("Observers", .hangGuard) struct ObserverTests {
    @Test("An observer is given each kind of event, with what belongs to it") func kinds() async throws {
        let (log, waits) = (EventLog(), Gate())
        let observer = EventRecorder { operation, event in
            if case .waiting = event.kind { waits.open() }
            log.add("\(event.kind) \(operation.isCancelled) \(operation.isFinished)")
        }
        let policy = RetryPolicy(maximumAttempts: 2, backoff: .constant(.nanoseconds(1)), jitter: .none)
        let retry = observer.observe(TaskOperation(name: "retry", retry: policy) { throw TestError.first })
        retry.addCondition(name: "ready") { _ in
            await waits.opened()
            return .satisfied
        }
        try? await OperationQueue().run(CompoundOperation(name: "compound", operations: [retry]))
        let cancelled = observer.observe(ScriptedOperation())
        cancelled.cancel()
        cancelled.start()
        #expect(
            log.events == [
                "was added to “compound” false false", "started false false",
                "is evaluating its condition “ready” false false", "runs false false",
                "retries in 1e-09 seconds, because attempt 1 failed: first false false", "failed: first false true",
                "was cancelled true false", "finished as cancelled true true",
            ])
    }

    @Test("Observers and `didCancel()` learn the reason of a cancellation", arguments: [TestError.first, nil])
    func reason(_ reason: TestError?) {
        let log = EventLog()
        let work = ScriptedOperation(main: { _ in }, didCancel: { log.add(text($0.cancellationReason)) })
        work.addObserver(
            EventRecorder { _, event in if case .cancelled(let reason) = event.kind { log.add(text(reason)) } })
        work.start()
        #expect(work.cancellationReason == nil)
        if let reason { work.cancel(withError: reason) } else { work.cancel() }
        #expect(log.events == [text(reason), text(reason)] && work.cancellationReason as? TestError == reason)
        work.finish()
    }

    @Test("An operation that an observer ends when it is cancelled is not told of that afterwards")
    func endedByObserver() {
        let log = EventLog()
        let work = ScriptedOperation(main: { _ in }, didCancel: { _ in log.add("didCancel") })
        work.addObserver(
            EventRecorder { operation, event in
                if case .cancelled = event.kind { operation.finish(withError: nil) }
            })
        work.start()
        work.cancel()
        #expect(work.isFinished && log.events == [])
    }

    @Test("Observers are called in the order of their addition, outer ones first") func order() async throws {
        let log = EventLog()
        let leaf = ScriptedOperation("leaf")
        let compound = CompoundOperation(name: "compound", operations: [leaf])
        for (operation, name) in [(leaf, "c"), (compound, "a"), (compound, "b"), (leaf, "d")] {
            operation.addObserver(EventRecorder { _, event in if event.isEnd { log.add(name) } })
        }
        try await OperationQueue().run(compound)
        #expect(log.events == ["a", "b", "c", "d", "a", "b"])
    }

    @Test("A removed observer is not called, also when it is removed by itself or by another one") func removal() {
        let listener = EventRecorder()
        let operation = ScriptedOperation.idle("work")
        let remover = EventRecorder { operation, event in if event.isRunning { operation.removeObserver(listener) } }
        operation.addObserver(remover)
        operation.addObserver(listener)
        operation.start()
        operation.removeObserver(listener)
        operation.finish()
        #expect(listener.events == ["work: started"] && remover.events.count == 3)
    }

    @Test("An observer that is removed from one operation sees all of the other", arguments: 0..<2)
    func removedFromOne(index: Int) {
        let (listener, child) = (EventRecorder(), ScriptedOperation.idle("child"))
        let compound = CompoundOperation(name: "compound", operations: [child])
        let remover = EventRecorder { [weak child, weak compound] _, event in
            if event.isRunning { (index == 0 ? compound : child)?.removeObserver(listener) }
        }
        for observer in [remover, listener] { compound.addObserver(observer) }
        child.addObserver(listener)
        child.start()
        child.finish()
        #expect(listener.events == ["child: started", "child: running", "child: finished"])
        compound.cancel()
    }

    @Test("An observer is released when it is removed, or its operation ends") func release() async throws {
        let (tracker, child) = (LeakTracker(), ScriptedOperation.idle("child"))
        let compound = CompoundOperation(name: "compound", operations: [child])
        do {
            let listener = tracker.track(EventRecorder(), "removed")
            compound.addObserver(listener)
            await compound.start(until: child)
            compound.removeObserver(listener)
        }
        for _ in 0..<2 { compound.addObserver(tracker.track(EventRecorder())) }
        child.finish()
        try await compound.finished()
        let unused = tracker.track(ScriptedOperation())
        unused.addObserver(tracker.track(EventRecorder(), "unused"))
        #expect(tracker.alive.contains("unused"))
        _ = consume unused
        await tracker.expectAllReleased()
    }

    @Test("An observer that an event releases is released with no lock held") func releaseUnlocked() {
        let (child, isFree) = (ScriptedOperation.idle("child"), Shared<Bool?>(nil))
        let compound = CompoundOperation(name: "compound", operations: [child])
        do {
            let released = Released { isFree.value = answersOnAnotherThread { child.name = "renamed" } }
            let observer = EventRecorder { _, _ in released.use() }
            compound.addObserver(observer)
            child.cancel()
            compound.removeObserver(observer)
        }
        child.start()
        #expect(isFree.value == true)
    }

    // In a process of their own: global observers cost other tests, which count what they do.

    @Test("A global observer sees every operation, also those that exist, until it is removed") func global() async {
        await #expect(processExitsWith: .success) {
            let (before, observer, queue) = (ScriptedOperation("before"), EventRecorder(), OperationQueue())
            for _ in 0..<2 { AsyncOperation.addGlobalObserver(observer) }
            before.start()
            try await queue.run(CompoundOperation(name: "compound", operations: [ScriptedOperation("child")]))
            // What waits for them is no operation of the user's.
            try await queue.run(BlockOperation {})
            queue.addOperation(BlockOperation {})
            try await queue.allOperationsFinished()
            // Nor is what lets an attempt of a closure wait.
            let (count, delay) = (Shared(0), Backoff.constant(.nanoseconds(1)))
            let policy = RetryPolicy(maximumAttempts: 2, backoff: delay, jitter: .none)
            let load = TaskOperation(name: "load", retry: policy) {
                if count.increment() == 1 { throw TestError.first }
            }
            load.require(ExclusiveAccess("database"))
            try await queue.run(load)
            let map = MapOperation<Int, Int> { $0 }
            map.isSuspended = true
            map.isSuspended = false
            AsyncOperation.removeGlobalObserver(observer)
            ScriptedOperation("after").start()
            #expect(
                observer.events == [
                    "before: started", "before: running", "before: finished", "child: added to compound",
                    "compound: started", "compound: running", "child: started", "child: running", "child: finished",
                    "compound: finished", "load: started", "load: running",
                    "load: retrying after attempt 1 and 1e-09 seconds: first", "load: finished",
                ])
            // It has been released of every operation that it has seen, once the thread that delivered the last event is done.
            await eventually("an operation keeps the observer") { !ObserverList.isObserving }
        }
    }

    @Test("An operation that moves into a composite is seen by its observers") func moving() async throws {
        let (listener, outer) = (EventRecorder(), EventRecorder())
        let longer = MacroOperation(Step.increment("step")).then(Step.increment("next"))
        longer.name = "longer"
        longer.addObserver(listener)
        let compound = CompoundOperation(name: "compound", operations: [longer.with(input: 1)])
        compound.addObserver(outer)
        try await OperationQueue().run(compound)
        #expect(listener.events.first == "longer: added to compound")
        for seen in [listener, outer] { #expect(seen.events(of: "step") == ["started", "running", "finished"]) }
    }

    @Test("Events have the fixed identifier of their operation, and rising times") func identifiers() async throws {
        let (first, second) = (AsyncOperation(), AsyncOperation())
        #expect(first.observationID < second.observationID && first.observationID == first.observationID)
        let data = try JSONEncoder().encode([first.observationID])
        #expect(try JSONDecoder().decode([OperationID].self, from: data) == [first.observationID])
        #expect(String(decoding: data, as: UTF8.self) == "[\(first.observationID)]")
        let events = first.events
        var last = ContinuousClock.now
        first.start()
        for await event in events {
            #expect(event.operation == first.observationID && event.name == "AsyncOperation" && event.droppedCount == 0)
            #expect(event.time >= last)
            last = event.time
        }
        #expect(last <= .now)
    }

    private func read(_ events: OperationEvents) async -> [String] {
        var read: [String] = []
        for await event in events { read.append("\(event)") }
        return read
    }

    @Test("If events are not read, the oldest are dropped and counted") func overflow() async throws {
        let compound = CompoundOperation(name: "compound", maxConcurrentOperationCount: 1) {
            for number in 0..<100 { ScriptedOperation("\(number)") }
        }
        let events = compound.events(bufferingNewest: 3)
        try await OperationQueue().run(compound)
        var read: [OperationEvent] = []
        for await event in events { read.append(event) }
        #expect(read.map(\.description) == ["“99” runs", "“99” finished", "“compound” finished"])
        #expect(read.map(\.droppedCount) == [300, 0, 0])
    }

    @Test("The sequence of an operation that is released without having started ends") func released() async throws {
        var operation: ScriptedOperation? = ScriptedOperation("work")
        let events = operation?.events
        operation?.cancel()
        operation = nil
        #expect(try await read(#require(events)) == ["“work” was cancelled"])
    }

    @Test("Cancelling the task that reads ends its sequence, and no other") func cancelled() async throws {
        let (operation, hasRead) = (ScriptedOperation.idle("work"), Gate())
        let others = operation.events
        let task = Task { [events = operation.events] in
            var count = 0
            for await _ in events {
                count += 1
                if count == 2 { hasRead.open() }
            }
            return count
        }
        operation.start()
        await hasRead.opened()
        task.cancel()
        #expect(await task.value == 2)
        operation.finish()
        #expect(await read(others) == ["“work” started", "“work” runs", "“work” finished"])
    }

    @Test("No event is kept for a sequence once its reader is gone") func unread() async {
        let operation = ScriptedOperation.idle("work")
        let events = operation.events
        _ = operation.events
        await eventually("is kept") { operation.withState { $0.eventQueue?.observers.count } == 1 }
        withExtendedLifetime(events) {}
    }

    @Test("A sequence keeps no operation alive, and one after the end is empty") func notKept() async throws {
        let tracker = LeakTracker()
        var events: OperationEvents
        do {
            let operation = tracker.track(ScriptedOperation("work"))
            _ = operation.events
            try await OperationQueue().run(operation)
            events = operation.events
        }
        await tracker.expectAllReleased()
        #expect(await read(events).isEmpty)
        events = tracker.track(ScriptedOperation("dropped")).events
        await tracker.expectAllReleased()
        #expect(await read(events).isEmpty)
    }

    @Test("One that only the library knows has no events, and keeps no observer") func hidden() async throws {
        let (first, second) = (Step.increment("first"), Step.increment("second"))
        let next = Step<(Int, Int), Int>("next") { $0.finish(with: $1.0 + $1.1) }
        let macro = MacroOperation(Step.increment("load")).then(concurrently: first, second).then(next)
        let join = try #require(next.dependencies.first as? AsyncOperation)
        let tracker = LeakTracker()
        join.addObserver(tracker.track(EventRecorder { _, _ in Issue.record("An event") }))
        await tracker.expectAllReleased()
        let events = join.events
        #expect(try await OperationQueue().run(macro.with(input: 1)) == 6)
        #expect(await read(events).isEmpty)
    }
}
