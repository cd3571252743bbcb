import Foundation
import OperationKitTestSupport
import Testing

@Suite("Support", .hangGuard) struct SupportTests {
    @Test("A gate holds a thread until it is opened") func gateHoldsThread() async {
        let gate = Gate()
        let log = EventLog()
        async let passed = onThread {
            gate.pass()
            log.add("passed")
        }
        log.add("opening")
        gate.open()
        await passed
        #expect(log.events == ["opening", "passed"])
    }

    @Test("A gate holds a task until it is opened") func gateHoldsTask() async {
        let gate = Gate()
        let waiting = Task { await gate.opened() }
        #expect(!gate.isOpen)
        gate.open()
        await waiting.value
        await gate.opened()
    }

    @Test("Cancelling a task ends its wait at a gate") func cancelledAtGate() async {
        let gate = Gate()
        let waiting = Task { await gate.opened() }
        waiting.cancel()
        await waiting.value
        #expect(!gate.isOpen)
    }

    @Test("The leak tracker sees what is alive") func leakTracker() async {
        let tracker = LeakTracker()
        var token: LeakTracker.Token? = tracker.token("token")
        #expect(tracker.alive == ["token"])
        token?.use()
        token = nil
        await tracker.expectAllReleased()
    }

    @Test("Bodies that run concurrently have threads of their own") func ownThreads() async {
        let threads = Shared<Set<ObjectIdentifier>>([])
        let all = Shared<[Thread]>([])
        let body: @Sendable () -> Void = {
            all.change { $0.append(Thread.current) }
            _ = threads.change { $0.insert(ObjectIdentifier(Thread.current)) }
        }
        await concurrently(Array(repeating: body, count: 8))
        #expect(threads.value.count == 8)
        // A thread holds what it runs.
        all.value = []
    }

    @Test("A race runs every body in every round before it is checked") func everyRound() async {
        let wrong = Shared(0)
        let checked = Shared(0)
        await race(
            rounds: 100, seed: 1, prepare: { _ in Shared(0) },
            Array(repeating: { $0.change { $0 += 1 } }, count: 3),
            check: { subject, _ in
                if subject.value != 3 { wrong.change { $0 += 1 } }
                checked.change { $0 += 1 }
            })
        #expect(wrong.value == 0)
        #expect(checked.value == TestExtent.choose(33, long: 100))
    }
}
