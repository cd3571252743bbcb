import OperationKitTestSupport

/// The guarantees of collection operations, in all four strategies and all forms of a run. They block dispatch threads, so
/// one at a time.
@Suite("Collection operations", .serialized, .hangGuard) struct CollectionOperationTests {
    /// An odd first item makes its unit fail.
    private static func error(of items: [Int]) -> TestError? { items[0] % 2 == 1 ? .numbered(items[0]) : nil }

    /// The failures of the units that `error(of:)` lets fail, item by item.
    private static func expectFailures(
        _ failures: [CollectionFailure<Int>], of units: [[Int]], _ location: SourceLocation = #_sourceLocation
    ) {
        let failed = units.filter { error(of: $0) != nil }
        #expect(failures.map(\.item) == failed.flatMap(\.self), sourceLocation: location)
        #expect(failures.map(\.index) == failures.map(\.item), sourceLocation: location)
        let errors = failed.flatMap { unit in unit.map { _ in text(error(of: unit)) } }
        #expect(failures.map { text($0.error) } == errors, sourceLocation: location)
    }

    @Test("Every item or batch is performed once and has its outcome", arguments: Strategy.allCases, Form.allCases)
    func outcomes(strategy: Strategy, form: Form) async throws {
        for count in [0, 1, 6, 7, 8, 40] {
            for batchSize in [1, 2, 7, 200] {
                let log = WorkLog()
                let operation = strategy.make(batchSize: batchSize) { items, completion in
                    log.began(items)
                    completion(Self.error(of: items))
                }
                let failures = try await form.failures(of: operation, on: count)
                let units = strategy.units(count, batchSize: batchSize)
                #expect(log.units.sorted { $0[0] < $1[0] } == units)
                if !strategy.isParallel { #expect(log.units == units, "One after the other means in order") }
                Self.expectFailures(failures, of: units)
            }
        }
    }

    @Test("Only the first report of an end counts, on whatever thread", arguments: Strategy.allCases, Report.allCases)
    func repeatedReports(strategy: Strategy, report: Report) async throws {
        for (form, batchSize) in [(Form.completion, 1), (.completion, 3), (.sequence, 1), (.sequence, 3)] {
            let operation = strategy.make(batchSize: batchSize) { items, completion in
                report(completion, Self.error(of: items))
            }
            let failures = try await form.failures(of: operation, on: 100)
            Self.expectFailures(failures, of: strategy.units(100, batchSize: batchSize))
        }
    }

    @Test("A report that comes again during a later item does not end that", arguments: Strategy.allCases)
    func reportDuringAnother(strategy: Strategy) async throws {
        let earlier = Shared<(@Sendable ((any Error)?) -> Void)?>(nil)
        let operation = strategy.make(limit: 1) { items, completion in
            earlier.value?(TestError.second)
            earlier.value = completion
            completion(Self.error(of: items))
        }
        let failures = try await Form.completion.failures(of: operation, on: 100)
        Self.expectFailures(failures, of: strategy.units(100, batchSize: 1))
    }

    @Test("The first failure ends the run if the policy says so", arguments: Strategy.allCases, Form.allCases)
    func failurePolicy(strategy: Strategy, form: Form) async throws {
        let operation = strategy.make(limit: 1, policy: .cancelRemaining) { items, completion in
            completion(items[0] == 1 ? CancellationError() : items[0] == 3 ? TestError.first : nil)
        }
        // Without the failure, a sequence would not end.
        let failures = try await form.failures(of: operation, on: form.isArray ? 6 : .max)
        #expect(failures.map(\.index) == (form.isArray ? [1, 3, 4, 5] : [1, 3]))
        let rest = form.isArray ? ["cancelled", "cancelled"] : []
        #expect(failures.map { text($0.error) } == ["cancelled", "first"] + rest)
    }

    @Test("Many items neither grow the stack nor get lost", arguments: Strategy.allCases, [Form.completion, .sequence])
    func manyItems(strategy: Strategy, form: Form) async throws {
        for endsElsewhere in [false, true] {
            let count = TestExtent.choose(endsElsewhere ? 1_000 : 5_000, long: endsElsewhere ? 10_000 : 50_000)
            let ended = Shared(0)
            // The stack of a dispatch worker is small; recursion of this depth overflows any.
            let operation = strategy.make { _, completion in
                ended.change { $0 += 1 }
                if endsElsewhere { elsewhere { completion(nil) } } else { completion(nil) }
            }
            #expect(try await form.failures(of: operation, on: count).isEmpty && ended.value == count)
        }
    }

    @Test("The limit of items in flight is reached, and no more are read", arguments: Strategy.allCases, [1, 2, 5])
    func limit(strategy: Strategy, limit: Int) async throws {
        for form in [Form.completion, .sequence, .asyncSequence] {
            let (log, taken, batchSize) = (WorkLog(), Shared(0), 2)
            let operation = strategy.make(limit: limit, batchSize: batchSize) { items, completion in
                log.keep(completion)
                log.began(items)
            }
            let task = Task { try await form.failures(of: operation, on: 20) { taken.value = $0 + 1 } }
            let (width, size) = (strategy.width(limit), strategy.isBatch ? batchSize : 1)
            for begun in width...(20 / size) {
                await eventually("\(log.units.count) instead of \(begun) have begun") { log.units.count == begun }
                if !form.isArray { #expect(taken.value == begun * size) }
                // One ends, and one takes its place.
                var kept = log.takeKept()
                kept.removeFirst()(nil)
                for completion in kept { log.keep(completion) }
            }
            for completion in log.takeKept() { completion(nil) }
            #expect(try await task.value.isEmpty && log.units.count == 20 / size)
        }
    }

    @Test("An item is in flight until its call has returned", arguments: Strategy.allCases, Form.allCases)
    func callThatLasts(strategy: Strategy, form: Form) async throws {
        let (log, began, mayReturn, isOver) = (WorkLog(), Gate(), Gate(), Gate())
        let operation = strategy.make(limit: 1) { items, completion in
            log.began(items)
            completion(nil)
            if items[0] == 1 {
                began.open()
                mayReturn.pass()
            }
            log.ended()
        }
        let task = Task {
            defer { isOver.open() }
            return try await form.failures(of: operation, on: 2)
        }
        await began.opened()
        #expect(!isOver.isOpen)
        mayReturn.open()
        #expect(try await task.value.isEmpty)
        #expect(log.mostInFlight == 1 && log.inFlight == 0)
    }

    @Test("Blocking items reach the limit", arguments: [Strategy.parallelItems, .parallelBatches], Form.allCases)
    func blockingItems(strategy: Strategy, form: Form) async throws {
        let (log, line) = (WorkLog(), StartLine(2))
        let operation = strategy.make(limit: 2) { items, completion in
            log.began(items)
            // None goes on until two are here.
            line.meet()
            log.ended()
            completion(nil)
        }
        #expect(try await form.failures(of: operation, on: 20).isEmpty && log.mostInFlight == 2)
    }

    @Test("No items complete immediately", arguments: Strategy.allCases) func emptyCollection(strategy: Strategy) {
        let log = EventLog()
        strategy.make { _, _ in log.add("work") }.performOperation(on: []) { log.add("\($0.count) errors") }
        #expect(log.events == ["0 errors"])
    }

    @Test("A limit or a batch size below 1 is reported, and nothing is read or performed", arguments: [0, -1, .min])
    func invalidOptions(value: Int) async {
        let log = EventLog()
        let work: Work = { _, _ in log.add("work") }
        func limit(_ type: String) -> CoordinationError {
            .invalidLimit(type: type, maxConcurrentOperationCount: value)
        }
        func size(_ type: String) -> CoordinationError { .invalidBatchSize(type: type, batchSize: value) }
        let cases: [(any CollectionOperation<Int> & Sendable, CoordinationError)] = [
            (ParallelItems(value, 1, .continueAll, work), limit("ParallelItems")),
            (ParallelBatches(value, 1, .continueAll, work), limit("ParallelBatches")),
            (ParallelBatches(1, value, .continueAll, work), size("ParallelBatches")),
            (SequentialBatches(1, value, .continueAll, work), size("SequentialBatches")),
        ]
        for (operation, error) in cases {
            for items in [[], [1, 2, 3]] {
                let answers = EventLog()
                operation.performOperation(on: items) { answers.add($0.map(text).joined()) }
                #expect(answers.events == [text(error)])
            }
            let failures = operation.failures(in: [7, 8], errors: await operation.performOperation(on: [7, 8]))
            #expect(failures.map(\.item) == [7, 8] && failures.allSatisfy { text($0.error) == text(error) })
            for isCancelled in [false, true] {
                let run = operation.makeOperation(on: [1, 2])
                if isCancelled { run.cancel() }
                await #expect(throws: error) { try await OperationQueue().run(run) }
                #expect(run.errors.map(text) == [text(error)])
            }
            for form in [Form.sequence, .asyncSequence] {
                await #expect(throws: error) { try await form.failures(of: operation, on: 3) { _ in log.add("read") } }
            }
        }
        #expect(log.events.isEmpty)
    }

    @Test("A run and its object live until it ends, also if a completion is kept forever", arguments: Strategy.allCases)
    func lifetime(strategy: Strategy) async {
        for isOperation in [false, true] {
            let (tracker, log, begun, over) = (LeakTracker(), WorkLog(), Gate(), Gate())
            do {
                let token = tracker.token("completion")
                let operation = strategy.make { _, completion in
                    log.keep(completion)
                    begun.open()
                }
                tracker.track(operation, "operation")
                let completion: @Sendable () -> Void = {
                    token.use()
                    over.open()
                }
                if isOperation {
                    let run = operation.makeOperation(on: [1])
                    run.asyncCompletionBlock = { _ in completion() }
                    run.start()
                } else {
                    operation.performOperation(on: [1]) { _ in completion() }
                }
            }
            await begun.opened()
            #expect(tracker.alive.sorted() == ["completion", "operation"])
            let kept = log.takeKept()
            for completion in kept { completion(nil) }
            await over.opened()
            await tracker.expectAllReleased()
            for completion in kept { completion(nil) }
        }
    }
}

enum Form: CaseIterable, Sendable {
    case completion, await, operation, sequence, asyncSequence

    /// Whether items that have not started are reported.
    var isArray: Bool { self != .sequence && self != .asyncSequence }

    /// Performs the numbers below `count`, and returns what became of the items that failed or did not start. `read` is called
    /// with the index of each item that is asked of a sequence and exists.
    func failures(
        of operation: some CollectionOperation<Int>, on count: Int, read: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> [CollectionFailure<Int>] {
        let sequence = Reads { index in
            guard index < count else { return nil }
            read(index)
            return index
        }
        let errors: [(any Error)?]
        switch self {
        case .completion:
            let (slots, calls) = await operation.run(on: Array(0..<count))
            #expect(calls == 1)
            errors = slots
        case .await:
            errors = await operation.performOperation(on: Array(0..<count))
        case .operation:
            let run = operation.makeOperation(on: Array(0..<count))
            try? await OperationQueue().run(run)
            errors = run.errors
            let failed = errors.indices.filter { errors[$0] != nil && errors[$0]?.isCancellation != true }
            // The failure of the run is that of the items that failed, and no cancellation.
            #expect(((run.error as? CompoundOperationError)?.leafErrors.count ?? 0) == failed.count && !run.isCancelled)
        case .sequence:
            return try await operation.performOperation(onEach: sequence)
        case .asyncSequence:
            return try await operation.performOperation(onEach: AsyncReads(sequence: sequence))
        }
        return operation.failures(in: Array(0..<count), errors: errors)
    }
}

/// Gives the items of a sequence asynchronously, and fails at the end if it is told to.
struct AsyncReads: AsyncSequence, AsyncIteratorProtocol, Sendable {
    var sequence: Reads
    var failure: TestError?

    mutating func next() async throws -> Int? {
        await Task.yield()
        if let next = sequence.next() { return next }
        if let failure { throw failure }
        return nil
    }

    func makeAsyncIterator() -> AsyncReads { self }
}

/// When and how often the end of a unit is reported.
enum Report: CaseIterable, Sendable {
    case onAnotherThread, twice, onTwoThreads

    func callAsFunction(_ completion: @escaping @Sendable ((any Error)?) -> Void, _ error: (any Error)?) {
        switch self {
        case .onAnotherThread: elsewhere { completion(error) }
        case .twice:
            completion(error)
            completion(TestError.second)
        case .onTwoThreads:
            elsewhere {
                completion(error)
                elsewhere { completion(TestError.second) }
            }
        }
    }
}
