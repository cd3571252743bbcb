import OperationKitTestSupport

@testable import OperationKit

@Suite("Ends of maps", .hangGuard) struct MapEndTests {
    @Test(
        "An outcome that other code gives ends it, and cancels those in flight, which change its results no more",
        arguments: [nil, TestError.first])
    func endedByOtherCode(failure: TestError?) async {
        let (begun, wasCancelled, mayEnd, tracker) = (Gate(), Gate(), Gate(), LeakTracker())
        let map: MapOperation<Int, Int>
        do {
            let token = tracker.token("the closure")
            map = MapOperation { _ in
                token.use()
                begun.open()
                do { try await cancellation() } catch { wasCancelled.open() }
                await mayEnd.openedDespiteCancellation()
                throw TestError.second
            }
        }
        map.input = [1]
        map.start()
        await begun.opened()
        if let failure { map.finish(withError: failure) } else { map.finish(with: [7]) }
        try? await map.finished()
        #expect(map.output == (failure == nil ? [7] : nil) && map.error as? TestError == failure)
        await wasCancelled.opened()
        mayEnd.open()
        await tracker.expectAllReleased()
        #expect(map.results.map { try? $0.get() } == (failure == nil ? [7] : []))
    }

    @Test("The end and a cancellation may meet anywhere") func races() async {
        let tracker = LeakTracker()
        for round in 0..<1_000 {
            let map = tracker.track(MapOperation<Int, Int>(maxConcurrentOperationCount: 2) { $0 })
            map.input = [1, 2, 3]
            map.start()
            for _ in 0..<round % 4 { await Task.yield() }
            map.cancel()
            _ = try? await map.finished()
            #expect(map.error == nil ? map.output == [1, 2, 3] : map.output == nil)
        }
        await tracker.expectAllReleased()
    }

    #if os(Linux)
    @Test("After a cancellation, nothing but the ends of those in flight is waited for")
    func waitAfterCancellation() async {
        let (wakeUps, ended) = (Shared(0), Gate())
        let mayEnd = [Gate(), Gate()]
        let begun = Shared(0)
        let task = Task(executorPreference: NotingExecutor { wakeUps.change { $0 += 1 } }) {
            var numbers = [0, 1, 2].makeIterator()
            try? await forEachConcurrently(
                limit: 2, suspension: Suspension(), next: { numbers.next() },
                perform: { _, number in
                    begun.change { $0 += 1 }
                    await mayEnd[number].openedDespiteCancellation()
                },
                ended: { _, _ in
                    ended.open()
                    return true
                })
        }
        await eventually("two begin") { begun.value == 2 }
        task.cancel()
        mayEnd[1].open()
        await ended.opened()
        let count = wakeUps.value
        for _ in 0..<2_000 { await Task.yield() }
        #expect(wakeUps.value <= count + 2)
        mayEnd[0].open()
        await task.value
    }
    #endif

    @Test("Suspending and resuming again and again loses no element", arguments: [1, 3])
    func suspendedOften(limit: Int) async throws {
        let map = MapOperation<Int, Int>(maxConcurrentOperationCount: limit) { number in
            if number.isMultiple(of: 7) { await Task.yield() }
            return number
        }
        map.with(input: Array(0..<500)).start()
        while !map.isFinished {
            map.isSuspended = true
            await Task.yield()
            map.isSuspended = false
            await Task.yield()
        }
        #expect(try await map.value == Array(0..<500))
    }

    @Test("One that is suspended again before its task goes on begins nothing") func suspendedAgain() async {
        let actor = Waiter()
        let (suspension, hasGoneOn) = (Suspension(), Shared(false))
        suspension.isSuspended = true
        let task = await actor.waitForResume(of: suspension) { hasGoneOn.value = true }
        await actor.resumeAndSuspend(suspension)
        for _ in 0..<20 { await actor.pass() }
        #expect(!hasGoneOn.value)
        suspension.isSuspended = false
        await task.value
        #expect(hasGoneOn.value)
    }
}

private actor Waiter {
    func pass() {}

    /// Begins to wait before it returns.
    func waitForResume(of suspension: Suspension, _ body: @escaping @Sendable () -> Void) async -> Task<Void, Never> {
        let begun = Gate()
        let task = Task {
            // On the actor, because it calls a method of that.
            pass()
            begun.open()
            await suspension.ended()
            body()
        }
        await begun.opened()
        return task
    }

    /// Without letting anything go on in between.
    func resumeAndSuspend(_ suspension: Suspension) {
        suspension.isSuspended = false
        suspension.isSuspended = true
    }
}
