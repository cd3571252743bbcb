import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTesting

@Suite("Doubles", .timeLimit(.minutes(10)))
struct DoubleTests {
    @Test("A manual operation ends when the test says so, and records what was called")
    func manualOperation() async throws {
        let load = ManualOperation<Void, String>(name: "load")
        OperationQueue().addOperation(load)
        await load.started()
        #expect(load.isExecuting && load.hasStarted)
        load.finish(with: "page")
        #expect(try await load.value == "page")
        #expect(load.calls == [.main])
    }

    @Test("A manual operation ends when it is cancelled, or goes on", arguments: [false, true])
    func cancelledManualOperation(_ ignores: Bool) async throws {
        let load = ManualOperation<Void, Void>(name: "load", ignoresCancellation: ignores)
        OperationQueue().addOperation(load)
        await load.started()
        load.cancel()
        // The hook is called once main() has returned, on its thread.
        await eventually("the hook is not called") { load.calls == [.main, .didCancel] }
        if ignores { load.finish() }
        #expect(((try? await load.finished()) != nil) == ignores)
    }

    @Test("A manual clock drives timeouts") func manualClock() async throws {
        let clock = ManualClock()
        let load = ManualOperation<Void, Void>()
        load.clock = clock
        load.timeout = .seconds(5)
        OperationQueue().addOperation(load)
        await clock.pass(.seconds(5))
        await #expect(throws: OperationTimeoutError.self) { try await load.finished() }
        #expect(clock.now.offset == .seconds(5))
    }

    @Test("A manual clock lets a delay pass, though a timeout is there before it")
    func delayBesideTimeout() async throws {
        for _ in 0..<20 {
            let clock = ManualClock()
            let policy = RetryPolicy(maximumAttempts: 2, backoff: .constant(.seconds(10)), jitter: .none)
            let page = RetryOperation(policy) { attempt in
                TaskOperation { if attempt == 1 { throw CocoaError(.fileReadUnknown) } else { attempt } }
            }
            page.clock = clock
            page.timeout = .seconds(100)
            OperationQueue().addOperation(page)
            await clock.pass(.seconds(10))
            #expect(try await page.value == 2 && clock.now.offset == .seconds(10))
        }
    }

    @Test("Time that passes meanwhile brings what sleeps into the duration that is waited for")
    func passTogether() async throws {
        for _ in 0..<20 {
            let clock = ManualClock()
            let sleep = Task { try await clock.sleep(for: .seconds(10)) }
            await clock.sleepers()
            let passing = Task { await clock.pass(.seconds(5)) }
            await Task.yield()
            clock.advance(by: .seconds(6))
            await passing.value
            try await sleep.value
            #expect(clock.now.offset == .seconds(11))
        }
    }

    @Test("A task that is cancelled while it waits for a sleeper lets no time pass")
    func passCancelled() async {
        let clock = ManualClock()
        let passing = Task { await clock.pass(.seconds(5)) }
        passing.cancel()
        await passing.value
        #expect(clock.now.offset == .zero)
    }

    @Test("What threads advance a manual clock by at the same time adds up")
    func advancedTogether() async {
        let clock = ManualClock()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<5_000 { clock.advance(by: .seconds(1)) } }
            }
        }
        #expect(clock.now.offset == .seconds(20_000))
    }

    @Test("A manual clock shows each deadline when it resumes those that are due then")
    func deadlinesOnTheWay() async throws {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        let (clock, times) = (ManualClock(), Shared<[Duration]>([]))
        let sleeps = [3, 1, 2].map { seconds in
            Task(executorPreference: NotingExecutor { times.change { $0.append(clock.now.offset) } }) {
                try await clock.sleep(for: .seconds(seconds))
            }
        }
        await clock.sleepers(atLeast: 3)
        clock.advance(by: .seconds(5))
        for sleep in sleeps { try await sleep.value }
        // One that had not suspended yet goes on without its executor.
        if times.value.suffix(3).contains(.zero) { return try await deadlinesOnTheWay() }
        #expect(times.value.suffix(3) == [1, 2, 3].map { .seconds($0) } && clock.now.offset == .seconds(5))
    }

    // A minute is a hundred times as long as it takes, and shorter than it took when each looked at all others.
    @Test("Many tasks can sleep on a manual clock, and wake or be cancelled", .timeLimit(.minutes(1)))
    func manySleepers() async {
        let (clock, count) = (ManualClock(), TestExtent.choose(8_000, long: 20_000))
        for isCancelled in [false, true] {
            let sleeps = (1...count).map { seconds in Task { try await clock.sleep(for: .seconds(seconds)) } }
            await clock.sleepers(atLeast: count)
            if isCancelled { for sleep in sleeps { sleep.cancel() } } else { clock.advance(by: .seconds(count)) }
            for sleep in sleeps { #expect(((try? await sleep.value) == nil) == isCancelled) }
            #expect(clock.deadlines.isEmpty)
        }
    }

    @Test("A wait for what sleeps ends with its task, and no other one does") func cancelledWait() async {
        for _ in 0..<100 {
            let clock = ManualClock()
            let (other, cancelled) = (Task { await clock.sleepers() }, Task { await clock.sleepers(atLeast: 2) })
            await Task.yield()
            cancelled.cancel()
            await cancelled.value
            let sleep = Task { try await clock.sleep(for: .seconds(1)) }
            await other.value
            #expect(clock.deadlines.count == 1)
            sleep.cancel()
        }
    }

    @Test("A gate holds until it is opened") func gate() async {
        let gate = Gate()
        #expect(!gate.isOpen)
        Thread { if gate.pass(within: .seconds(60)) {} }.start()
        async let opened: Void = gate.opened()
        gate.open()
        await opened
        #expect(gate.isOpen)
    }

    @Test("A body that hangs is reported with the operations that have not finished, and is cancelled")
    func hang() async throws {
        // On a busy machine it takes a while until the operations have started.
        for limit in [Duration.milliseconds(100), .seconds(1), .seconds(10), .seconds(100)] {
            let load = ManualOperation<Void, Void>(name: "load that hangs")
            let error = await #expect(throws: HangError.self) {
                try await withHangReport(after: limit) {
                    try await OperationQueue().run(CompoundOperation(name: "sync that hangs", operations: [load]))
                }
            }
            let tree = try #require(error?.tree)
            if !tree.contains("“load that hangs”: executing"), limit < .seconds(100) { continue }
            #expect(tree.contains("  “sync that hangs”: executing"))
            #expect(tree.contains("    “load that hangs”: executing"))
            #expect(load.calls == (load.hasStarted ? [.main, .didCancel] : []))
            return
        }
    }

    private final class EndsWhenAsked: AsyncOperation, OperationObserver, @unchecked Sendable {
        let isReported = Gate()
        override func main() {}

        /// Holds up the thread that delivers its events, so that observers do not know of its end.
        func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
            if case .running = event.kind { isReported.pass(within: .seconds(100)) }
        }

        override var debugDescription: String {
            finish()
            return super.debugDescription
        }
    }

    @Test("What ends while a report is made is not in it; the report has a domain of its own")
    func endedMeanwhile() async {
        for limit in [Duration.milliseconds(100), .seconds(1), .seconds(10), .seconds(100)] {
            let operation = EndsWhenAsked()
            operation.name = "ends when asked"
            operation.addObserver(operation)
            let error = await #expect(throws: HangError.self) {
                try await withHangReport(after: limit) {
                    Thread { operation.start() }.start()
                    try await Task.sleep(for: .seconds(1_000))
                }
            }
            operation.isReported.open()
            #expect(error?.tree.contains("ends when asked") == false)
            #expect((error as NSError?)?.domain == "OperationKit.HangError")
            if operation.isFinished { return }
        }
        Issue.record("it was not asked")
    }

    @Test("A report lists what waits on a queue and has not been started, and says what for")
    func unstarted() async throws {
        // On a busy machine it takes a while until the operation is on the queue.
        for limit in [Duration.milliseconds(100), .seconds(1), .seconds(10), .seconds(100)] {
            let login = ManualOperation<Void, Void>(name: "login that is forgotten")
            let notify = ManualOperation<Void, Void>(name: "notify that waits")
            notify.addDependency(login)
            let error = await #expect(throws: HangError.self) {
                try await withHangReport(after: limit) { try await OperationQueue().run(notify) }
            }
            let lines = try #require(error?.tree.split(separator: "\n"))
            let line = "    “notify that waits”: waiting for “login that is forgotten”, which has not been started"
            let isFound = lines.contains { $0 == line }
            #expect(isFound || limit < .seconds(100))
            if isFound { return }
        }
    }

    @Test("A report lists what is inside a composite once, also of before the watch, and nothing that has ended")
    func childrenOfBefore() async throws {
        for limit in [Duration.milliseconds(100), .seconds(1), .seconds(10), .seconds(100)] {
            let load = ManualOperation<Void, Void>(name: "load of before")
            let sync = CompoundOperation(name: "sync of before", operations: [load])
            let watch = HangWatch(after: limit)
            let ended = ManualOperation<Void, Void>(name: "end of before")
            ended.start()
            ended.finish()
            OperationQueue().addOperation(sync)
            await load.started()
            await eventually("the watch does not report") { watch.error != nil }
            load.finish()
            let lines = try #require(watch.error?.tree.split(separator: "\n"))
            let found = lines.filter { $0.contains(" of before”: executing") }
            if found.count < 2, limit < .seconds(100) { continue }
            #expect(found.count == 2)
            #expect(ended.isFinished && !lines.contains { $0.contains("end of before") })
            #expect(found.first?.hasPrefix("  “sync of before”") == true)
            #expect(found.last?.hasPrefix("    “load of before”") == true)
            return
        }
    }

    // In a process of its own: reports of other tests would wait for the operation, too.
    @Test("An operation that holds the lock which its state takes is named in the report, and the body is cancelled")
    func noAnswer() async {
        await #expect(processExitsWith: .success) {
            for limit in [Duration.seconds(1), .seconds(10), .seconds(100)] {
                let group = CompoundOperation(name: "group", operations: [SelfLockingOperation()])
                let other = ManualOperation<Void, Void>(name: "other")
                let error = await #expect(throws: HangError.self) {
                    try await withHangReport(after: limit) {
                        for operation in [group, other] { OperationQueue().addOperation(operation) }
                        await Gate().opened()
                    }
                }
                let lines = (error?.tree ?? "").split(separator: "\n")
                let expected = ["  “group”: does not say what it does", "  “other”: executing"]
                // The thread that asks is still there, with what it asks.
                if expected.allSatisfy({ text in lines.contains { $0.hasPrefix(text) } }) { _exit(EXIT_SUCCESS) }
            }
            _exit(EXIT_FAILURE)
        }
    }

    @Test("A report is written, or else thrown, and nothing watches after it", arguments: [true, false])
    func written(isWritable: Bool) async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [isWritable] in
            if !isWritable { makeStandardErrorUnwritable() }
            await #expect(throws: HangError.self) {
                try await withHangReport(after: .milliseconds(1)) { await Gate().opened() }
            }
            #expect(!ObserverList.isObserving)
        }
        let printed = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(
            printed.contains("after 0.001 seconds. These operations have not finished:\n  none that is") == isWritable)
    }

    @Test("A body that ends in time gives what it returns, and what it throws")
    func noHang() async throws {
        #expect(try await withHangReport(after: .seconds(60)) { 7 } == 7)
        await #expect(throws: CocoaError.self) {
            try await withHangReport(after: .seconds(60)) { throw CocoaError(.fileNoSuchFile) }
        }
    }

    @Test("A watch and a gate wait for any duration", arguments: [Duration.seconds(Int64.max), .seconds(Int64.min)])
    func extremeDurations(limit: Duration) async {
        let (waits, gate, returned) = (Gate(), Gate(), Gate())
        let watch = HangWatch(after: limit)
        Thread {
            waits.open()
            _ = gate.pass(within: limit)
            returned.open()
        }.start()
        await waits.opened()
        gate.open()
        await returned.opened()
        #expect(limit < .zero || watch.error == nil)
        watch.stop()
    }

    @Test("A gate is waited for as long as was said, though the clock is set forward meanwhile")
    func clockSetForward() async {
        let gate = Gate()
        let (isOpen, waits) = await onThread {
            var waits = 0
            let isOpen = gate.pass(within: .seconds(600)) { rest in
                waits += 1
                if waits < 3 { return .distantPast }
                Thread { gate.open() }.start()
                return rest.fromNow
            }
            return (isOpen, waits)
        }
        #expect(isOpen && waits >= 3)
    }

    @Test("A watch reports without a body, and not after it was stopped")
    func watch() async throws {
        // On a busy machine the time is over before anything else is done.
        for limit in [Duration.milliseconds(20), .seconds(1), .seconds(10), .seconds(100)] {
            let load = ManualOperation<Void, Void>(name: "watched")
            let (watch, stopped) = (HangWatch(after: limit), HangWatch(after: limit))
            stopped.stop()
            let isLate = stopped.error != nil
            load.start()
            await eventually("the watch does not report") { watch.error != nil }
            load.finish()
            #expect(isLate || stopped.error == nil)
            let isComplete = watch.error?.description.contains("“watched”: executing") == true
            #expect(isComplete || limit < .seconds(100))
            if isComplete, !isLate { return }
        }
    }
}

/// An operation whose work never ends, and holds the lock of its state.
private final class SelfLockingOperation: Operation, @unchecked Sendable {
    private let lock = NSLock()

    override var isFinished: Bool { lock.withLock { super.isFinished } }

    override func main() {
        lock.lock()
        Gate().pass(within: .seconds(Int64.max))
        lock.unlock()
    }
}
