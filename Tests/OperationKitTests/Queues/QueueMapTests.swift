import OperationKitTestSupport

@Suite("OperationQueue.map", .hangGuard) struct QueueMapTests {

    enum Kind: CaseIterable, Sendable {
        case queue, operation

        /// Transforms elements on a queue, or as an operation on it.
        func outputs<Element: Sendable, Output: Sendable>(
            of elements: [Element], limit: Int = 8, on queue: OperationQueue = OperationQueue(),
            _ transform: @escaping @Sendable (Element) async throws -> Output
        ) async throws -> [Output] {
            if self == .queue { return try await queue.map(elements, limit: limit, transform) }
            let map = MapOperation(
                name: "map", maxConcurrentOperationCount: limit, failurePolicy: .cancelRemaining, transform)
            return try await queue.run(map.with(input: elements))
        }
    }

    @Test("Outputs have the order of elements", arguments: Kind.allCases) func order(kind: Kind) async throws {
        let gates = (0..<8).map { _ in Gate() }
        let outputs = try await kind.outputs(of: Array(gates.indices)) { number in
            // The last one ends first.
            if number < 7 { await gates[number + 1].opened() }
            gates[number].open()
            return "\(number)"
        }
        #expect(outputs == (0..<8).map(String.init))
    }

    @Test("Each element takes a place on the queue") func places() async throws {
        let tokens = TokenCount()
        let queue = OperationQueue.serial(name: "serial")
        async let first = queue.map(0..<50, limit: 8) { await tokens.hold($0) }
        async let second = queue.map(50..<100, limit: 8) { await tokens.hold($0) }
        #expect(try await first + second == Array(0..<100))
        #expect(tokens.most == 1)
    }

    @Test("A map takes no more elements than it may", arguments: [3, nil]) func memory(limit: Int?) async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 3
        let (taken, ended, most) = (Shared(0), Shared(0), Shared(0))
        let numbers = (0..<500).lazy.map { number in
            _ = taken.increment()
            return number
        }
        let outputs = try await queue.map(numbers, limit: limit) { number in
            let inMemory = taken.value - ended.value
            most.change { $0 = max($0, inMemory) }
            await Task.yield()
            _ = ended.increment()
            return number
        }
        // One that has ended may not have been received.
        #expect(outputs == Array(0..<500) && most.value <= 3 && taken.value == 500)
    }

    @Test("The first error cancels the others and is thrown", arguments: Kind.allCases, [2, 100])
    func firstError(kind: Kind, count: Int) async {
        let (log, begun) = (EventLog(), Gate())
        let error = await #expect(throws: (any Error).self) {
            // All have begun then, or not.
            try await kind.outputs(of: Array(0..<count), limit: count == 2 ? 3 : 2) { number in
                if number == 0 {
                    begun.open()
                    defer { log.add("0 ended") }
                    try await cancellation()
                }
                await begun.opened()
                log.add("\(number) failed")
                throw TestError.first
            }
        }
        #expect(log.events.sorted() == ["0 ended", "1 failed"])
        #expect(kind == .queue ? text(error) == "first" : brief(error) == "map failed [1 item 1]")
        await #expect(throws: (any Error).self) {
            try await kind.outputs(of: Array(0..<count), limit: 1) { number in
                log.add("\(number) alone")
                throw TestError.first
            }
        }
        #expect(log.events.dropFirst(2) == ["0 alone"])
    }

    @Test("A result per element: failures leave the others alone") func results() async throws {
        let results = try await OperationQueue().mapToResults(0..<6, limit: 2) { number in
            if number.isMultiple(of: 3) { throw TestError.numbered(number) }
            return number
        }
        #expect(results.map { try? $0.get() } == [nil, 1, 2, nil, 4, 5])
        let failures = results.failures(of: "abcdef")
        #expect(failures.map { "\($0.index) \($0.item) \(text($0.error))" } == ["0 a numbered(0)", "3 d numbered(3)"])
    }

    @Test("A limit below 1 of a map on a queue is an error that names it, and nothing runs", arguments: [0, -2])
    func invalidLimit(limit: Int) async {
        let (queue, log) = (OperationQueue.serial(name: "uploads"), EventLog())
        let error = OperationQueueError.invalidLimit(queue: "uploads", limit: limit)
        await #expect(throws: error) { try await queue.map([1], limit: limit) { _ in log.add("ran") } }
        await #expect(throws: error) { try await queue.mapToResults([1], limit: limit) { _ in log.add("ran") } }
        #expect(log.events.isEmpty)
    }

    @Test("Cancelling the task cancels the elements, also those that wait for the queue", arguments: [true, false])
    func cancelledTask(isSuspended: Bool) async {
        let (queue, begun, ended) = (OperationQueue(), Shared(0), Shared(0))
        queue.isSuspended = isSuspended
        let task = Task {
            try await queue.map(0..<100, limit: 4) { _ in
                _ = begun.increment()
                defer { _ = ended.increment() }
                try await cancellation()
            }
        }
        await eventually("they do not wait") { isSuspended ? queue.operationCount == 4 : begun.value == 4 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(begun.value == (isSuspended ? 0 : 4) && ended.value == begun.value)
        queue.isSuspended = false
    }

    @Test("A cancelled map has the outputs if no element was left out", arguments: [1, 2, 3], [false, true])
    func cancelledDuringLast(limit: Int, leavesOut: Bool) async throws {
        let (begun, isCancelled) = (Shared(0), Gate())
        @Sendable func transform(_ number: Int) async -> Int {
            if begun.increment() == 3 { await isCancelled.opened() }
            return number
        }
        let task = Task {
            let queue = OperationQueue()
            if leavesOut { return try await queue.mapToResults(0..<4, limit: limit) { await transform($0) } }
            // The count of any collection says that none was left out.
            return try await queue.mapToResults(["a": 0, "b": 1, "c": 2], limit: limit) { await transform($0.value) }
        }
        await eventually("the third does not run") { begun.value >= 3 }
        task.cancel()
        isCancelled.open()
        let outputs = try? await task.value.map { try $0.get() }
        // With more than one at a time, it may have been asked whether there is another one.
        if limit == 1 || !leavesOut { #expect(outputs?.sorted() == (leavesOut ? nil : [0, 1, 2])) }
    }

    @Test("A map that is cancelled asks its sequence for no other element", arguments: [0, 1], [false, true])
    func cancelledSource(count: Int, isFilter: Bool) async {
        let (asked, isCancelled) = (Shared(0), Gate())
        let task = Task {
            if count == 0 { await isCancelled.opened() }
            let queue = OperationQueue()
            if isFilter {
                let numbers = (0..<1_000).lazy.filter { _ in asked.increment() > 0 }
                _ = try await queue.mapToResults(numbers, limit: 1) { _ in await isCancelled.opened() }
            } else {
                let numbers = AnySequence { AnyIterator { asked.increment() } }
                _ = try await queue.map(numbers, limit: 1) { _ in await isCancelled.opened() }
            }
        }
        await eventually("none was taken") { asked.value == count }
        task.cancel()
        isCancelled.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(asked.value == count)
    }

    @Test("What belongs to a map is released", arguments: Kind.allCases) func release(kind: Kind) async throws {
        let tracker = LeakTracker()
        do {
            let queue = tracker.track(OperationQueue())
            let token = tracker.token("closure")
            _ = try await kind.outputs(of: (0..<100).map { tracker.token("element \($0)") }, on: queue) { element in
                token.use()
                element.use()
                return tracker.token("output")
            }
        }
        await tracker.expectAllReleased()
    }
}
