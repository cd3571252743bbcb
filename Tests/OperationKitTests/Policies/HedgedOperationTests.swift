import OperationKitTestSupport

@testable import OperationKit

@Suite("Hedged operations", .hangGuard) struct HedgedOperationTests {
    private let clock = ManualClock()

    /// The attempts of one operation, which end when the test says so, or as cancelled.
    private final class Attempts: Sendable {
        private let all = Shared<[Int: Step<Void, Int>]>([:])

        /// Makes an attempt. The holder is told of its end before the composite is, and after the hedged operation.
        func make(_ number: Int, _ holder: Holder? = nil) -> Step<Void, Int> {
            let step = Step<Void, Int> { step, _ in
                if let holder { #expect(step.observeFinish(holder) == nil) }
            }
            all.change { $0[number] = step }
            return step
        }

        subscript(number: Int) -> Step<Void, Int>? { all.value[number] }

        func begun(_ number: Int) async {
            await eventually("attempt \(number) has not begun") { self[number]?.isAtWork == true }
        }
    }

    /// Holds up the thread that ends an operation.
    private final class Holder: FinishObserving, Sendable {
        let end = HeldWork()

        func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) { end() }
    }

    /// An operation with three attempts, a second after each other.
    private func started() -> (Attempts, HedgedOperation<Void, Int>) {
        let attempts = Attempts()
        let hedged = HedgedOperation(after: .seconds(1), maximumAttempts: 3, name: "page") { attempts.make($0) }
        hedged.clock = clock
        hedged.start()
        return (attempts, hedged)
    }

    @Test("Another attempt begins after each delay; the first success cancels the others") func slow() async throws {
        let (attempts, hedged) = started()
        await attempts.begun(1)
        await clock.sleepers()
        let lines = hedged.debugDescription.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasSuffix("attempt 1 of 3, attempt 2 of 3 begins in 1 s"))
        #expect(lines[1].hasPrefix("  “page, attempt 1”: executing"))
        clock.advance(by: .seconds(1))
        await attempts.begun(2)
        await clock.pass(.seconds(1))
        await attempts.begun(3)
        #expect(clock.deadlines.isEmpty && hedged.attemptCount == 3)
        #expect(hedged.debugDescription.contains("attempt 3 of 3\n"))
        attempts[2]?.finish(with: 2)
        #expect(try await hedged.value == 2)
        for number in [1, 3] {
            #expect(attempts[number]?.isCancelled == true && attempts[number]?.isFinished == true)
        }
    }

    @Test("An attempt that fails makes the next one begin, and the last failure counts") func failures() async {
        let (attempts, hedged) = started()
        for number in 1...3 {
            await attempts.begun(number)
            attempts[number]?.finish(withError: TestError.numbered(number))
        }
        await #expect(throws: TestError.numbered(3)) { try await hedged.value }
        #expect(clock.now.offset == .zero)
        await clock.expectNoSleepers()
    }

    @Test("A delay counts from the begin of the last attempt") func delayAfterFailure() async throws {
        let (attempts, hedged) = started()
        await attempts.begun(1)
        await clock.sleepers()
        clock.advance(by: .milliseconds(700))
        attempts[1]?.finish(withError: TestError.first)
        await attempts.begun(2)
        // The task that sleeps may go on for the delay before, and finds nothing then.
        let passing = Task { [clock] in
            while !Task.isCancelled {
                await clock.sleepers()
                clock.advance(by: .milliseconds(100))
            }
        }
        await attempts.begun(3)
        passing.cancel()
        #expect(clock.now.offset >= .milliseconds(1_700))
        attempts[2]?.finish(withError: TestError.first)
        attempts[3]?.finish(with: 3)
        #expect(try await hedged.value == 3)
    }

    @Test("An attempt that was cancelled by itself begins no further one, and does not win", arguments: [true, false])
    func cancelledAttempt(succeeds: Bool) async throws {
        let (attempts, hedged) = started()
        await attempts.begun(1)
        await clock.pass(.seconds(1))
        await attempts.begun(2)
        attempts[1]?.cancel()
        await eventually("the delay goes on") { clock.deadlines.isEmpty }
        #expect(hedged.isExecuting)
        if succeeds { attempts[2]?.finish(with: 2) } else { attempts[2]?.finish(withError: TestError.first) }
        try await hedged.waitForFinish()
        #expect(text(hedged.error) == (succeeds ? "success" : "first") && hedged.attemptCount == 2)
    }

    @Test("A failure counts more than a cancellation of another attempt, and less than that of the whole")
    func cancellationAfterFailure() async {
        for isWhole in [false, true] {
            let (attempts, hedged) = started()
            for number in 1...2 {
                await attempts.begun(number)
                attempts[number]?.finish(withError: TestError.first)
            }
            await attempts.begun(3)
            if isWhole { hedged.cancel() } else { attempts[3]?.cancel() }
            try? await hedged.waitForFinish()
            #expect(hedged.error is CancellationError == isWhole)
        }
    }

    @Test("Cancelled, it ends after all attempts, and a failure stands") func failureAfterCancellation() async {
        let running = [0, 1].map { _ in ManualOperation<Void, Int>(ignoresCancellation: true) }
        let hedged = HedgedOperation<Void, Int>(after: .seconds(1), maximumAttempts: 3) { number in
            #expect(number < 3)
            return running[min(number, 2) - 1]
        }
        hedged.clock = clock
        hedged.start()
        await running[0].started()
        await clock.pass(.seconds(1))
        await running[1].started()
        hedged.cancel()
        running[0].finish(withError: TestError.first)
        await eventually("counts") { hedged.unfinishedChildren(atMost: 2)?.children.count == 1 }
        #expect(running.allSatisfy(\.isCancelled) && !hedged.isFinished)
        running[1].finish(withError: CancellationError())
        await #expect(throws: TestError.first) { try await hedged.value }
    }

    @Test("Without a delay all attempts begin, and the first of two successes counts") func firstOfTwo() async throws {
        let (attempts, holder) = (Attempts(), Holder())
        let hedged = HedgedOperation(after: .zero, maximumAttempts: 3) { number in
            attempts.make(number, number == 2 ? holder : nil)
        }
        hedged.require(ExclusiveAccess("page"))
        hedged.start()
        for number in 1...3 { await attempts.begun(number) }
        DispatchQueue.global().async { attempts[2]?.finish(with: 2) }
        await holder.end.begun.opened()
        attempts[1]?.finish(with: 1)
        await eventually("the other is not cancelled") { attempts[3]?.isCancelled == true }
        holder.end.mayEnd.open()
        #expect(try await hedged.value == 2)
        #expect(hedged.attemptCount == 3)
    }

    @Test("A success counts, also if the thread that ends the attempt is held up") func heldUpSuccess() async throws {
        let holder = Holder()
        let attempt = Step<Void, Int> { step, _ in
            Thread { step.finish(with: 1) }.start()
            // When this returns, the worker finds the attempt ended.
            holder.end.begun.pass()
        }
        _ = attempt.observeFinish(holder)
        let hedged = HedgedOperation<Void, Int>(after: .seconds(1), maximumAttempts: 1) { _ in attempt }
        hedged.clock = clock
        hedged.start()
        #expect(try await hedged.value == 1)
        holder.end.mayEnd.open()
    }

    @Test("An attempt that is made after a success does not begin or count") func attemptMadeTooLate() async throws {
        let (attempts, making) = (Attempts(), HeldWork())
        let hedged = HedgedOperation(after: .seconds(1)) { number in
            if number == 2 { making() }
            return attempts.make(number)
        }
        hedged.clock = clock
        hedged.start()
        await attempts.begun(1)
        await clock.pass(.seconds(1))
        await making.begun.opened()
        attempts[1]?.finish(with: 1)
        making.mayEnd.open()
        #expect(try await hedged.value == 1)
        #expect(hedged.attemptCount == 1 && attempts[2]?.isFinished == true)
        #expect(attempts[2]?.isCancelled == true && attempts[2]?.isAtWork == false)
    }

    @Test("A closure that throws ends it, also if an attempt then succeeds") func successAfterThrow() async {
        let running = ManualOperation<Void, Int>(ignoresCancellation: true)
        let hedged = HedgedOperation<Void, Int>(after: .seconds(1)) { number in
            if number == 2 { throw TestError.first }
            return running
        }
        hedged.clock = clock
        hedged.start()
        await running.started()
        await clock.pass(.seconds(1))
        await eventually("is not cancelled") { running.isCancelled }
        running.finish(with: 1)
        await #expect(throws: TestError.first) { try await hedged.value }
    }
}
