import OperationKitTestSupport

@Suite("MapOperation", .hangGuard) struct MapOperationTests {
    private func run<Element, Output>(_ map: MapOperation<Element, Output>, _ input: [Element]) async throws -> [Output]
    {
        try await OperationQueue().run(map.with(input: input))
    }

    @Test("It is a step of a chain, and its closure may be synchronous") func chain() async throws {
        let chain = MacroOperation(MapOperation<String, Int> { $0.count }).then(IOBlockOperation { $0.reduce(0, +) })
        #expect(try await OperationQueue().run(chain.with(input: ["one", "three"])) == 8)
        #expect(try await run(MapOperation<Int, Int> { $0 }, []).isEmpty)
    }

    @Test("A limit below 1 is an error, and nothing runs", arguments: [0, -1]) func invalidLimit(limit: Int) async {
        let log = EventLog()
        let map = MapOperation<Int, Int>(name: "map", maxConcurrentOperationCount: limit) { number in
            log.add("ran")
            return number
        }
        await #expect(throws: CoordinationError.invalidLimit(type: "map", maxConcurrentOperationCount: limit)) {
            try await run(map, [1])
        }
        #expect(log.events.isEmpty && map.results.isEmpty)
    }

    @Test("Failures are reported together by index, and the other elements have results") func failures() async {
        let map = MapOperation<Int, Int>(name: "map", maxConcurrentOperationCount: 2) { number in
            if number.isMultiple(of: 2) { throw TestError.numbered(number) }
            return number
        }
        let error = await #expect(throws: CompoundOperationError.self) { try await run(map, [1, 2, 3, 4]) }
        #expect(brief(error) == "map failed [1 item 1, 3 item 3]")
        #expect(error?.suboperationErrors.map(\.siblingCount) == [4, 4])
        #expect(map.results.map { try? $0.get() } == [1, nil, 3, nil] && map.output == nil)
        #expect(map.results.map { text($0.failure) } == ["success", "numbered(2)", "success", "numbered(4)"])
        #expect(map.progress.completedUnitCount == 4)
    }

    @Test("An element that is cancelled by itself is no failure, and no success") func cancelledElement() async {
        let map = MapOperation<Int, Int>(name: "map", failurePolicy: .cancelRemaining) { number in
            if number == 1 { throw CancellationError() }
            return number
        }
        let error = await #expect(throws: CompoundOperationError.self) { try await run(map, [0, 1, 2]) }
        #expect(brief(error) == "map cancelled []")
        #expect(map.results.map { text($0.failure) } == ["success", "cancelled", "success"])
    }

    @Test("Progress counts the elements that have ended") func progress() async throws {
        let work = Work()
        let map = work.make(limit: 2)
        let outer = CompoundOperation(operations: [map])
        let progress = outer.progress
        outer.start()
        for number in 0..<6 {
            #expect(progress.fractionCompleted == Double(number) / 6)
            work.gates[number].open()
            await eventually("progress stands still") { progress.fractionCompleted == Double(number + 1) / 6 }
            #expect(map.progress.completedUnitCount == Int64(number + 1))
        }
        try await outer.finished()
        #expect(map.progress.totalUnitCount == 6 && progress.fractionCompleted == 1)
    }

    /// Elements that begin are counted, and wait for their gates.
    private final class Work: Sendable {
        let gates = (0..<6).map { _ in Gate() }
        let begun = Shared(0)

        func make(limit: Int = 1) -> MapOperation<Int, Int> {
            let map = MapOperation<Int, Int>(name: "map", maxConcurrentOperationCount: limit) { [self] number in
                begun.change { $0 += 1 }
                await gates[number].opened()
                try Task.checkCancellation()
                return number
            }
            map.input = Array(gates.indices)
            return map
        }
    }

    @Test("While it is suspended no element starts, and those in flight end") func suspended() async throws {
        let work = Work()
        let map = work.make(limit: 2)
        map.start()
        await eventually("two do not begin") { work.begun.value == 2 }
        map.isSuspended = true
        work.gates[0].open()
        work.gates[1].open()
        await eventually("they do not end") { map.progress.completedUnitCount == 2 }
        #expect(work.begun.value == 2)
        #expect(map.isSuspended && !map.isFinished && map.debugDescription.hasSuffix(" suspended"))
        for gate in work.gates { gate.open() }
        #expect(work.begun.value == 2)
        map.isSuspended = false
        #expect(!map.debugDescription.contains("suspended"))
        #expect(try await map.value == Array(0..<6))
    }

    @Test("Suspended before its start, it starts nothing until it is resumed or cancelled", arguments: [true, false])
    func suspendedBeforeTheStart(isResumed: Bool) async {
        let work = Work()
        for gate in work.gates { gate.open() }
        let map = work.make()
        map.isSuspended = true
        map.start()
        await eventually("it does not start") { map.progress.totalUnitCount == 6 }
        #expect(work.begun.value == 0)
        if isResumed { map.isSuspended = false } else { map.cancel() }
        _ = try? await map.value
        #expect(work.begun.value == (isResumed ? 6 : 0))
        #expect(map.output?.count == (isResumed ? 6 : nil))
    }

    @Test("Suspending after the last element has started does not hold up the end", arguments: [6, 7])
    func suspendedAtTheEnd(limit: Int) async throws {
        let work = Work()
        let map = work.make(limit: limit)
        map.start()
        await eventually("they do not begin") { work.begun.value == 6 }
        map.isSuspended = true
        for gate in work.gates { gate.open() }
        #expect(try await map.value.count == 6)
    }

    @Test("Cancelling cancels those in flight, starts no other, and keeps earlier failures") func cancelled() async {
        let begun = Shared(0)
        let map = MapOperation<Int, Int>(name: "map", maxConcurrentOperationCount: 2) { number in
            if number == 0 { throw TestError.first }
            begun.change { $0 += 1 }
            try await cancellation()
        }
        map.with(input: Array(0..<6)).start()
        await eventually("two do not begin") { begun.value == 2 }
        map.cancel(withError: TestError.reason)
        let error = await #expect(throws: CompoundOperationError.self) { try await map.value }
        #expect(brief(error) == "map cancelled (reason) [0 item 0]" && begun.value == 2)
        #expect(map.results.map { text($0.failure) } == ["first"] + Array(repeating: "cancelled", count: 5))
    }
}
