import OperationKitTestSupport

@Suite("Sequences of events", .hangGuard) struct OperationEventsTests {
    private func read(_ events: OperationEvents) async -> [String] {
        var read: [String] = []
        for await event in events { read.append("\(event)") }
        return read
    }

    @Test("A sequence has the events of a composite and of what is inside it, and ends with the composite")
    func whole() async {
        let compound = CompoundOperation(name: "compound", operations: [ScriptedOperation("child")])
        let events = compound.events
        OperationQueue().addOperation(compound)
        #expect(
            await read(events) == [
                "“compound” started", "“compound” runs", "“child” started", "“child” runs", "“child” finished",
                "“compound” finished",
            ])
    }

    @Test("If events are not read, the oldest are dropped and counted, and the end never is")
    func overflow() async throws {
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

    @Test("Cancelling the task that reads ends its sequence, and the operation is released of it")
    func cancelled() async throws {
        let tracker = LeakTracker()
        let operation = tracker.track(ScriptedOperation.idle("work"))
        let others = operation.events
        let hasRead = Gate()
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

    @Test("A sequence keeps no operation alive, read or not, and that of an operation that has finished is empty")
    func notKept() async throws {
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
}
