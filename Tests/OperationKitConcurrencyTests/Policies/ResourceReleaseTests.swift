import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What is free, and counted, when an operation is finished.
@Suite("Releases at the end", .hangGuard) struct ResourceReleaseTests {
    enum Order: CaseIterable { case serialQueue, dependencies, compound, awaited }

    private func run(_ operations: [AsyncOperation], _ order: Order) async throws {
        let queue = OperationQueue()
        if order == .serialQueue { queue.maxConcurrentOperationCount = 1 }
        if order == .dependencies || order == .compound {
            for (next, operation) in zip(operations.dropFirst(), operations) { next.addDependency(operation) }
        }
        switch order {
        case .serialQueue, .dependencies:
            for operation in operations { queue.addOperation(operation) }
        case .compound:
            queue.addOperation(CompoundOperation(operations: operations))
        case .awaited:
            for operation in operations {
                queue.addOperation(operation)
                try await operation.waitForFinish()
            }
        }
        for operation in operations { try await operation.waitForFinish() }
    }

    @Test(
        "What an operation had is free when the next one of a queue, of a compound or of a task starts",
        arguments: Order.allCases)
    func free(order: Order) async throws {
        let (database, host) = (ExclusiveAccess("database", maximumWaiting: 0), ConcurrencyLimit("host", 1))
        let operations = (0..<TestExtent.choose(1_000, long: 10_000)).map { number -> AsyncOperation in
            let operation = AsyncBlockOperation(name: "\(number)") { finish in
                DispatchQueue.global().async { finish() }
            }
            operation.require(database)
            operation.require(host, within: .zero)
            return operation
        }
        try await run(operations, order)
        #expect(operations.compactMap { $0.error.map(String.init(describing:)) }.isEmpty)
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

    @Test(
        "What a circuit breaker counts is counted when the next operation of a queue starts", arguments: [true, false])
    func counted(isHalfOpen: Bool) async throws {
        for _ in 0..<TestExtent.choose(100, long: 1_000) {
            let clock = ManualClock()
            let breaker = CircuitBreaker("service", minimumCalls: 1, halfOpenCalls: 1, clock: clock)
            let count = Shared(0)
            var operations = (0..<5).map { number -> AsyncOperation in
                let operation = IOBlockOperation<Void, Int> {
                    count.change { $0 += 1 }
                    throw TestError.first
                }
                operation.require(breaker)
                return operation
            }
            if isHalfOpen {
                try await run([operations.removeFirst()], .awaited)
                clock.advance(by: .seconds(60))
                count.value = 0
            }
            try await run(operations, .serialQueue)
            #expect(count.value == 1)
            #expect(operations.dropFirst().allSatisfy { $0.error is CircuitOpenError })
        }
    }
}
