#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// The explorer itself: it finds mistakes that are there, and only those.
@Suite("Exploring interleavings", .serialized, .takesTurns, .hangGuard) struct ExplorationTests {
    private final class Counter: Sendable {
        private let count = Locked(0)

        var value: Int { count.withLock(\.self) }

        func increment() { count.withLock { $0 += 1 } }

        /// Wrong: another thread can come in between.
        func readThenWrite() {
            let value = count.withLock(\.self)
            count.withLock { $0 = value + 1 }
        }
    }

    private func count(
        _ extent: Choices.Extent, grain: Interleaving.Grain = .regions, threads: Int = 2,
        _ increment: @escaping @Sendable (Counter) -> Void
    ) async -> Exploration {
        await explore(
            extent, grain: grain, prepare: { _ in Counter() },
            ["a", "b", "c"].prefix(threads).map { Role($0, increment) },
            check: { counter, _ in counter.value == threads ? [] : ["\(counter.value) instead of \(threads)"] })
    }

    @Test("A counter that is read and then written is caught") func lostUpdate() async {
        let exploration = await count(.everything) { $0.readThenWrite() }
        #expect(exploration.failure?.problems == ["1 instead of 2"])
        #expect(exploration.failure?.trace == "a: locks | a: locks | b: locks | b: locks")
    }

    /// Virtual threads of s steps each can be interleaved in (2s)! / (s!)² ways if they are two, (3s)! / (s!)³ if
    /// three. One place makes two steps.
    @Test(
        "Every order is tried once",
        arguments: [
            (2, Interleaving.Grain.regions, 6), (2, .everyPlace, 20), (3, .regions, 90), (3, .everyPlace, 1_680),
        ])
    func everyOrder(threads: Int, grain: Interleaving.Grain, orders: Int) async {
        let exploration = await count(.everything, grain: grain, threads: threads) { $0.increment() }
        #expect(exploration.count == orders)
        #expect(exploration.failure == nil)
    }

    @Test("A mistake is found with as many preemptions as it needs") func preemptions() async {
        #expect(await count(.preemptions(0)) { $0.readThenWrite() }.failure == nil)
        #expect(await count(.preemptions(1)) { $0.readThenWrite() }.failure != nil)
    }

    @Test("What a sample finds is found again with its seed") func seed() async {
        let seed = SplitMix64.freshSeed()
        let first = await count(.samples(1_000, seed: seed)) { $0.readThenWrite() }
        let second = await count(.samples(1_000, seed: seed)) { $0.readThenWrite() }
        #expect(first.failure != nil, "seed \(seed)")
        #expect(first.count == second.count && first.failure?.trace == second.failure?.trace, "seed \(seed)")
        #expect(await count(.samples(1_000, seed: seed)) { $0.increment() }.count == 1_000)
    }

    @Test("A wait for what does not come is caught", arguments: [false, true]) func lostWakeup(comes: Bool) async {
        let exploration = await explore(
            .everything,
            prepare: { interleaving in
                let hasCome = Shared(false)
                interleaving.add("waiter", .waiting { hasCome.value }) {}
                return hasCome
            }, [Role("event") { $0.value = comes }], check: { _, _ in [] })
        #expect(exploration.failure?.problems == (comes ? nil : ["no thread can go on: waiter"]))
    }

    @Test("A virtual thread that blocks for real returns when another one has let it go") func blockedThread() async {
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

    @Test("A call with the lock held is caught") func callUnderALock() async {
        let exploration = await explore(
            .everything, prepare: { _ in Locked(()) },
            [Role("a") { lock in lock.withLock { _ in VirtualThread.place("callback") } }],
            check: { _, _ in [] })
        #expect(exploration.failure?.problems == ["callback is called with the lock held"])
    }
}
#endif
