import OperationKitTestSupport

@Suite("Ends of maps", .hangGuard) struct MapEndTests {
    @Test("An outcome that other code gives ends it, and cancels those in flight")
    func finishedByOtherCode() async throws {
        let wasCancelled = Gate()
        let begun = Gate()
        let map = MapOperation<Int, Int> { number in
            begun.open()
            try? await cancellation()
            wasCancelled.open()
            return number
        }
        map.input = [1]
        map.start()
        await begun.opened()
        map.finish(with: [7])
        #expect(try await map.value == [7])
        await wasCancelled.opened()
    }

    @Test("The results of one that other code has ended do not change later") func failedByOtherCode() async {
        let (begun, mayEnd, tracker) = (Gate(), Gate(), LeakTracker())
        let map: MapOperation<Int, Int>
        do {
            let token = tracker.token("the closure")
            map = MapOperation { _ in
                token.use()
                begun.open()
                await mayEnd.openedDespiteCancellation()
                throw TestError.second
            }
        }
        map.input = [1]
        map.start()
        await begun.opened()
        map.finish(withError: TestError.first)
        await #expect(throws: TestError.first) { try await map.finished() }
        mayEnd.open()
        await tracker.expectAllReleased()
        #expect(map.results.isEmpty)
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
}
