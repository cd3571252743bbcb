#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The explorer itself: it finds mistakes that are there, and only those.
@Suite("Trying every order", .serialized, .takesTurns, .hangGuard) struct ExplorationTests {
    private final class Counter: @unchecked Sendable {
        private let lock = NSLock()
        private var count = 0

        var value: Int { lock.withLock { count } }

        func incrementAtOnce() { lock.withLock { count += 1 } }

        /// Wrong: another thread can come in between.
        func readThenWrite() {
            let value = lock.withLock { count }
            lock.withLock { count = value + 1 }
        }
    }

    private func count(
        _ extent: Choices.Extent, grain: Interleaving.Grain = .regions, threads: Int = 2,
        _ increment: @escaping @Sendable (Counter) -> Void
    ) async -> Exploration {
        let check: @Sendable (Counter, Interleaving) -> [String] = { counter, _ in
            counter.value == threads ? [] : ["\(counter.value) instead of \(threads)"]
        }
        return await explore(
            extent, grain: grain, prepare: { _ in Counter() },
            ["a", "b", "c"].prefix(threads).map { Role($0, increment) },
            check: check)
    }

    @Test func aCounterThatIsReadAndThenWrittenIsCaught() async {
        let exploration = await count(.everything) { $0.readThenWrite() }
        #expect(exploration.failure?.problems == ["1 instead of 2"])
        #expect(exploration.failure?.trace == "a: locks | a: locks | b: locks | b: locks")
    }

    @Test func aCounterThatIsChangedAtOncePasses() async {
        let exploration = await count(.everything) { $0.incrementAtOnce() }
        #expect(exploration.failure == nil)
    }

    /// Virtual threads of s steps each can be interleaved in (2s)! / (s!)² ways if they are two, (3s)! / (s!)³ if
    /// three. One place makes two steps.
    @Test(arguments: [
        (2, Interleaving.Grain.regions, 6), (2, .everyPlace, 20), (3, .regions, 90), (3, .everyPlace, 1_680),
    ])
    func everyOrderIsTriedOnce(threads: Int, grain: Interleaving.Grain, orders: Int) async {
        let exploration = await count(.everything, grain: grain, threads: threads) { $0.incrementAtOnce() }
        #expect(exploration.count == orders)
        #expect(exploration.failure == nil)
    }

    @Test func aMistakeIsFoundWithAsManyPreemptionsAsItNeeds() async {
        #expect(await count(.preemptions(0)) { $0.readThenWrite() }.failure == nil)
        #expect(await count(.preemptions(1)) { $0.readThenWrite() }.failure != nil)
    }

    @Test func whatASampleFindsIsFoundAgainWithItsSeed() async {
        let seed = SplitMix64.freshSeed()
        let first = await count(.samples(1_000, seed: seed)) { $0.readThenWrite() }
        let second = await count(.samples(1_000, seed: seed)) { $0.readThenWrite() }
        #expect(first.failure != nil, "seed \(seed)")
        #expect(first.count == second.count && first.failure?.trace == second.failure?.trace, "seed \(seed)")
        #expect(await count(.samples(1_000, seed: seed)) { $0.incrementAtOnce() }.count == 1_000)
    }

    /// A thread waits for an event; right or wrong is how the wait begins.
    private final class Event: @unchecked Sendable {
        private let lock = NSLock()
        private var hasHappened = false
        private var sleepers = 0
        private var wakeups = 0

        func happen() {
            lock.withLock {
                hasHappened = true
                wakeups += sleepers
                sleepers = 0
            }
        }

        func waitAtOnce() {
            let mayPass = lock.withLock {
                if !hasHappened { sleepers += 1 }
                return hasHappened
            }
            if !mayPass { VirtualThread.wait { self.wakeups > 0 } }
        }

        /// Wrong: the event can happen before the sleeper is known.
        func lookThenWait() {
            if lock.withLock({ hasHappened }) { return }
            lock.withLock { sleepers += 1 }
            VirtualThread.wait { self.wakeups > 0 }
        }
    }

    @Test func aWaitThatIsNeverEndedIsCaught() async {
        let wrong = await explore(
            .everything, prepare: { _ in Event() },
            [Role("waiter") { $0.lookThenWait() }, Role("event") { $0.happen() }], check: { _, _ in [] })
        #expect(wrong.failure?.problems == ["no thread can go on: waiter"])
        let right = await explore(
            .everything, prepare: { _ in Event() },
            [Role("waiter") { $0.waitAtOnce() }, Role("event") { $0.happen() }], check: { _, _ in [] })
        #expect(right.failure == nil && right.count > 1)
    }

    @Test func aVirtualThreadThatBlocksForRealComesBackWhenTheOthersHaveLetItGo() async {
        let exploration = await explore(
            .everything, prepare: { _ in Gate() },
            [
                Role("blocked") { gate in VirtualThread.outside { gate.pass() } },
                Role("opener") { gate in
                    VirtualThread.place("before")
                    gate.open()
                    VirtualThread.place("after")
                },
            ], check: { gate, _ in gate.isOpen ? [] : ["closed"] })
        #expect(exploration.failure == nil && exploration.count > 1)
    }

    @Test func aCallWithTheLockHeldIsCaught() async {
        let exploration = await explore(
            .everything, prepare: { _ in NSLock() },
            [Role("a") { lock in lock.withLock { VirtualThread.place("callback") } }],
            check: { _, _ in [] })
        #expect(exploration.failure?.problems == ["callback is called with the lock held"])
    }
}
#endif
