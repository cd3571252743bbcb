import OperationKitTestSupport

@testable import OperationKit

@Suite("Delays", .hangGuard) struct DelayTests {
    private let clock = ManualClock()
    private let log = EventLog()

    private func delay(_ duration: Duration = .seconds(5)) -> DelayOperation {
        let operation = DelayOperation(for: duration)
        operation.clock = clock
        return operation
    }

    /// An operation that writes down that it runs, of this library or not.
    private func work(isForeign: Bool) -> Operation {
        isForeign ? BlockOperation { [log] in log.add("work") } : ScriptedOperation.named("work", in: log)
    }

    @Test("A delay ends when its time has passed, and not before") func duration() async throws {
        let delay = delay()
        delay.start()
        await clock.sleepers()
        clock.advance(by: .seconds(4))
        #expect(delay.isExecuting && clock.deadlines == [.seconds(5)])
        clock.advance(by: .seconds(1))
        try await delay.finished()
        #expect(clock.deadlines.isEmpty)
    }

    @Test("A delay that nothing else holds ends, and is released then") func dropped() async {
        let leaks = LeakTracker()
        do {
            let delay = leaks.track(delay())
            delay.asyncCompletionBlock = { [log] _ in log.add("ended") }
            delay.start()
        }
        await clock.pass(.seconds(5))
        await leaks.expectAllReleased()
        #expect(log.events == ["ended"])
    }

    @Test("A delay of no time ends when it starts", arguments: [0, -1]) func noTime(seconds: Int) {
        let delay = delay(.seconds(seconds))
        delay.start()
        #expect(delay.isFinished && delay.error == nil && clock.deadlines.isEmpty)
    }

    @Test("Cancelling a delay ends it immediately, and leaves no deadline behind") func cancelled() async {
        let delay = delay()
        delay.start()
        await clock.sleepers()
        delay.cancel()
        #expect(delay.isFinished && delay.error is CancellationError)
        await clock.expectNoSleepers()
    }

    @Test(
        "An operation that is added with a delay is on the queue, and starts when the time has passed",
        arguments: [false, true])
    func queue(isForeign: Bool) async throws {
        let queue = OperationQueue()
        let work = work(isForeign: isForeign)
        queue.addOperation(work, after: .seconds(5), clock: clock)
        #expect(queue.operations == [work])
        await clock.sleepers()
        clock.advance(by: .seconds(4))
        #expect(!work.isExecuting && log.events.isEmpty)
        clock.advance(by: .seconds(1))
        try await queue.allOperationsFinished()
        #expect(log.events == ["work"] && work.isFinished)
    }

    @Test(
        "An operation that is cancelled during its delay ends immediately, and its delay with it",
        arguments: [false, true])
    func queueCancelled(isForeign: Bool) async throws {
        let leaks = LeakTracker()
        let queue = OperationQueue()
        do {
            let work = leaks.track(work(isForeign: isForeign))
            let delay = leaks.track(queue.addOperation(work, after: .seconds(5), clock: clock))
            delay.asyncCompletionBlock = { [log] in log.add("delay \(text($0))") }
        }
        await clock.sleepers()
        queue.cancelAllOperations()
        try await queue.allOperationsFinished()
        await clock.expectNoSleepers()
        await eventually("the delay has not ended") { log.events == ["delay cancelled"] }
        await leaks.expectAllReleased()
    }

    @Test("An operation that is cancelled just as its delay ends is kept until the delay has notified it")
    func cancelledAtTheEnd() async throws {
        let leaks = LeakTracker()
        let queue = OperationQueue()
        let isKept = Shared(false)
        do {
            let work = leaks.track(work(isForeign: true))
            let delay = queue.addOperation(work, after: .seconds(5), clock: clock)
            let operation = WeakReference(work)
            delay.asyncCompletionBlock = { _ in
                queue.cancelAllOperations()
                queue.waitUntilAllOperationsAreFinished()
                isKept.value = operation.object != nil
            }
        }
        await clock.pass(.seconds(5))
        await leaks.expectAllReleased()
        #expect(isKept.value)
    }

    @Test(
        "The clock of a delayed operation is that of its delay, and cancelling that lets it start",
        arguments: [false, true])
    func itsDelay(isCancelled: Bool) async throws {
        let queue = OperationQueue()
        let work = ScriptedOperation()
        work.clock = clock
        let delay = queue.addOperation(work, after: .seconds(5))
        if isCancelled { delay.cancel() } else { await clock.pass(.seconds(5)) }
        try await work.finished()
        #expect(work.error == nil)
    }
}
