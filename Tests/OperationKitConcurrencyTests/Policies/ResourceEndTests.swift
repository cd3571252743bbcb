import OperationKitTestSupport

@testable import OperationKit

/// The ways in which an operation that requires resources can end.
@Suite("Ends of operations with resources", .hangGuard) struct ResourceEndTests {
    enum End: CaseIterable {
        case success, failure, cancellation, drop
    }

    private let leaks = LeakTracker()
    private let log = EventLog()

    private func operation(
        _ name: String, isCompound: Bool = false, _ resources: OperationResource...
    ) -> AsyncOperation {
        let work = leaks.track(
            ScriptedOperation(name, main: { [log] _ in log.add(name) }) { $0.finish(withError: CancellationError()) })
        let operation = isCompound ? leaks.track(CompoundOperation(operations: [work])) : work
        operation.name = name
        for resource in resources { operation.require(resource) }
        return operation
    }

    private func begun(_ name: String) async {
        await eventually("\(name) has not begun: \(log.events)") { log.events.contains(name) }
    }

    private func take(_ end: End, of operation: inout AsyncOperation?) {
        switch end {
        case .success: operation?.finish()
        case .failure: operation?.finish(withError: TestError.first)
        case .cancellation: operation?.cancel()
        case .drop: break
        }
        operation = nil
    }

    @Test(
        "An operation that ends at work releases what it has, however it ends", arguments: End.allCases, [false, true])
    func atWork(end: End, isCompound: Bool) async {
        // A compound that executes is kept alive by its children.
        if isCompound, end == .drop { return }
        do {
            let (database, host) = (leaks.track(ExclusiveAccess("database")), leaks.track(ConcurrencyLimit("host", 1)))
            var holder: AsyncOperation? = operation("holder", isCompound: isCompound, database, host)
            holder?.start()
            await begun("holder")
            let next = operation("next", database, host)
            next.start()
            #expect(database.waitingCount == 1)
            take(end, of: &holder)
            await begun("next")
            next.finish()
        }
        await leaks.expectAllReleased()
    }

    @Test(
        "An operation that ends while it waits does not wait any more, and runs nothing", arguments: End.allCases,
        [false, true])
    func waiting(end: End, isCompound: Bool) async {
        do {
            let database = leaks.track(ExclusiveAccess("database"))
            let holder = operation("holder", database)
            holder.start()
            var waiting: AsyncOperation? = operation("waiting", isCompound: isCompound, database)
            waiting?.start()
            let next = operation("next", database)
            next.start()
            #expect(database.waitingCount == 2)
            take(end, of: &waiting)
            await eventually("it waits") { database.waitingCount == 1 }
            holder.finish()
            await begun("next")
            next.finish()
            #expect(log.events == ["holder", "next"])
        }
        await leaks.expectAllReleased()
    }

    @Test("An operation that ends before its start requests nothing", arguments: End.allCases)
    func beforeTheStart(end: End) async {
        do {
            let database = leaks.track(ExclusiveAccess("database"))
            var ended: AsyncOperation? = operation("ended", database)
            let started = ended
            take(end, of: &ended)
            if end != .drop { started?.start() }
            let next = operation("next", database)
            next.start()
            #expect(log.events == ["next"])
            next.finish()
        }
        await leaks.expectAllReleased()
    }

    @Test(
        "What an attempt of a closure waits for or holds ends with the operation", arguments: [false, true],
        [End.failure, .cancellation])
    func attemptOfClosure(isWaiting: Bool, end: End) async {
        for _ in 0..<TestExtent.choose(150, long: 3_000) {
            let (database, closure, released) = (ExclusiveAccess("database", maximumWaiting: 1), Gate(), Gate())
            let holder = ScriptedOperation.idle("holder")
            holder.require(database)
            if isWaiting { holder.start() }
            let task = TaskOperation(name: "task", retry: RetryPolicy(maximumAttempts: 9, backoff: .none)) {
                closure.open()
                await released.openedDespiteCancellation()
                try Task.checkCancellation()
            }
            task.require(database)
            task.start()
            if isWaiting {
                // It is in the line a moment before it can end there.
                await eventually("it does not wait") {
                    task.withState { $0.gates?.helper }?.withState(\.lifecycle.isWaiting) == true
                }
            } else {
                await closure.opened()
            }
            var operation: AsyncOperation? = task
            take(end, of: &operation)
            // The work of one that was cancelled goes on.
            if end == .cancellation { released.open() }
            try? await task.finished()
            #expect(database.waitingCount == 0)
            let next = ScriptedOperation.idle("next")
            next.require(database)
            next.start()
            #expect(database.waitingCount == (isWaiting ? 1 : 0))
            for operation in [holder, next] { operation.finish() }
            released.open()
        }
    }

    @Test("Operations that wait for each other's end are let go on without nested calls, however many wait")
    func manyWaiting() async throws {
        let count = TestExtent.choose(2_000, long: 100_000)
        let database = ExclusiveAccess("database")
        let done = Shared(0)
        let holder = operation("holder", database)
        holder.start()
        let operations = (0..<count).map { number in
            let operation = ScriptedOperation { operation in
                let turn = done.change { done in
                    defer { done += 1 }
                    return done
                }
                operation.finish(withError: turn == number ? nil : TestError.numbered(number))
            }
            operation.require(database)
            operation.start()
            return operation
        }
        #expect(database.waitingCount == count)
        holder.finish()
        for operation in operations.reversed() { try await operation.finished() }
        #expect(done.value == count)
    }
}

/// What is free, and counted, when an operation is finished.
@Suite("Releases at the end", .hangGuard) struct ResourceReleaseTests {
    @Test("What a child had is free when the next one begins")
    func freeForTheNextChild() async throws {
        let (database, host) = (ExclusiveAccess("database", maximumWaiting: 0), ConcurrencyLimit("host", 1))
        let operations = (0..<TestExtent.choose(500, long: 10_000)).map { number in
            let operation = AsyncBlockOperation(name: "\(number)") { finish in elsewhere { finish() } }
            operation.require(database)
            operation.require(host, within: .zero)
            return operation
        }
        try await OperationQueue().run(CompoundOperation(operations: operations, maxConcurrentOperationCount: 1))
    }

    #if DEBUG
    /// A queue looks whether an operation is finished when its `start()` returns, at any moment of the end on another thread.
    @Test("An operation that has worked and is finished has nothing any more, at whichever moment another one begins")
    func nothingIsHeldAfterTheEnd() {
        var hasBegun = false
        for place in 0..<Interruption.bound {
            let clock = ManualClock()
            let breaker = CircuitBreaker("service", minimumCalls: 1, clock: clock)
            let database = ExclusiveAccess("database", maximumWaiting: 0)
            func operation(_ name: String) -> AsyncOperation {
                let operation = ScriptedOperation.idle(name)
                operation.require(database)
                return operation
            }
            let (first, second) = (operation("first"), operation("second"))
            first.require(breaker)
            first.start()
            let isOpen = Shared(false)
            let interruption = Interruption(at: place) {
                guard first.isFinished else { return }
                isOpen.value = breaker.state == .open
                second.start()
            }
            SchedulingProbe.observed(by: interruption) { _ = first.finish(withError: TestError.first) }
            if !interruption.hasRun { break }
            #expect(second.error == nil, "place \(place)")
            guard second.isExecuting else { continue }
            hasBegun = true
            #expect(isOpen.value, "place \(place)")
            second.finish()
        }
        #expect(hasBegun)
    }
    #endif

    @Test("Those who observe operations see the end of one before the next one can work") func order() async throws {
        /// Notes when it is released, and takes a moment for it.
        final class Resource: StartLease {
            let time = Shared<ContinuousClock.Instant?>(nil)

            func workEnded(of operation: AsyncOperation, error: (any Error)?) {}

            func workBegins() {}
            func granted() {}
            func surroundingsChanged(of operation: AsyncOperation) {}

            func release() -> [any StartLease] {
                let now = ContinuousClock.now
                time.value = now
                while ContinuousClock.now == now {}
                return []
            }
        }
        let (resource, end) = (Resource(), Shared<ContinuousClock.Instant?>(nil))
        let operation = ScriptedOperation.idle("load")
        operation.addObserver(EventRecorder { _, event in if event.isEnd { end.value = event.time } })
        operation.withState { $0.requiredGates().lease = resource }
        operation.start()
        operation.finish()
        #expect(try #require(end.value) <= #require(resource.time.value))
    }
}
