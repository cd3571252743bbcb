import Foundation
import OperationKit
import OperationKitTestSupport
import OperationKitTesting
import Testing

@Suite("Contract of operations", .timeLimit(.minutes(60)))
struct OperationContractTests {
    private typealias Rule = OperationContract.Rule
    private static let limit = Duration.milliseconds(200)

    private static let printsMessages = ProcessInfo.processInfo.environment["CONTRACT_MESSAGES"] != nil

    /// Some at a time: trials wait more than they work.
    private func inTurns<Element: Sendable>(
        _ elements: [Element], _ body: @escaping @Sendable (Element) async -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for (index, element) in elements.enumerated() {
                if index >= 6 { await group.next() }
                group.addTask { await body(element) }
            }
        }
    }

    /// Tries a class that breaks these rules. On a busy machine it may not answer within a short limit, so it is tried with a
    /// longer one if other rules are broken.
    private func report(
        _ expected: [Rule], within limits: [Duration] = [limit, .seconds(2), .seconds(20)],
        _ make: @escaping @Sendable () throws -> Operation
    ) async -> OperationContract.Report {
        let rounds = expected == [.survivesRaces] ? 64 : 16
        let report = await OperationContract.report(within: limits[0], rounds: rounds, make)
        if limits.count == 1 || report.violations.map(\.rule) == expected { return report }
        return await self.report(expected, within: Array(limits.dropFirst()), make)
    }

    private func rules(_ expected: [Rule], _ make: @escaping @Sendable () -> Operation) async -> [Rule] {
        await report(expected, make).violations.map(\.rule)
    }

    @Test("A closure that is the work of an operation may block") func blocks() async {
        let makers: [@Sendable () -> Operation] = [
            { ThrowingBlockOperation { usleep(110_000) } },
            { IOBlockOperation<Void, Int> { _ in Int(usleep(110_000)) } }, { BlockOperation { usleep(110_000) } },
        ]
        await inTurns(makers) { make in
            let report = await OperationContract.report(within: .seconds(20), rounds: 1, make)
            #expect(report.violations.isEmpty, "\(report)")
        }
    }

    @Test("A class that breaks a rule is found, and of no other rule") func brokenClasses() async {
        let cases: [(OperationContract.Rule, @Sendable () -> Operation)] = [
            (.doesNotBlock, { Blocking() }), (.finishes, { NeverFinishing() }),
            (.doesNotBlock, { AsyncBlockOperation { _ in DispatchSemaphore(value: 0).wait() } }),
            (.executesWhileWorking, { NotExecutingInStart() }), (.isAsynchronous, { NotAsynchronous() }),
            (.finishesOnce, { EndingTwice() }), (.finishesOnce, { DroppingItsCompletionBlock() }),
            (.finishesOnce, { DroppingItsBlockWhenCancelled() }), (.movesForward, { GoingBack() }),
            (.movesForward, { ExecutingAfterItsEnd() }), (.waitsForItsStart, { FinishingInCancel() }),
            (.marksCancellation, { NotMarking() }), (.marksCancellation, { MarkingOnlyBeforeItsStart() }),
            (.finishesWhenCancelledBefore, { DeafWhenCancelledBefore() }), (.finishes, { NeverFinishingOnQueue() }),
            (.doesNotWorkWhenCancelledBefore, { WorkingWhenCancelledBefore(onQueue: true) }),
            (.doesNotWorkWhenCancelledBefore, { WorkingWhenCancelledBefore(onQueue: false) }),
            (.finishesWhenCancelled, { ForgettingAfterCancellation() }), (.finishesWhenCancelled, { NotStopping() }),
            (.finishesWhenCancelled, { LosingLateCancellations(losesAll: true) }), (.becomesReady, { NeverReady() }),
            (.finishesWhenCancelled, { BlockingAfterLateCancellation() }), (.executesWhileWorking, { NotExecuting() }),
            (.finishesWhenCancelled, { Preparing { LookingAtItsCompound() } }),
            (.survivesRaces, { Racing() }), (.survivesRaces, { LosingLateCancellations(losesAll: false) }),
            (.isReleased, { LeakingWhenCancelledBefore() }), (.isReleased, { KeptUntilItsEnd() }),
            (.waitsForItsStart, { FinishingAfterCancel() }),
        ]
        await inTurns(cases) { rule, make in
            let report = await report([rule], make)
            #expect(report.violations.map(\.rule) == [rule], "\(rule): \(report)")
            if Self.printsMessages {
                print("| `\(rule)` | `\(type(of: make()))` | \(report.violations.first?.description ?? "") |")
            }
        }
    }

    @Test("One operation of many that never ends is found, whichever it is") func oneEndless() async {
        // The first one of a situation, or its only one, which comes later on a busy machine.
        await inTurns(TestExtent.choose([3, 4, 6, 7, 12, 13] + Array(18...24), long: Array(3...24))) { number in
            let (count, isStarted) = (Shared(0), Shared(false))
            let report = await OperationContract.report(within: Self.limit, rounds: 1) {
                let isEndless = count.change { count in
                    count += 1
                    return count == number
                }
                return isEndless ? Endless { isStarted.value = true } : ForeignOperation()
            }
            // Some are made to be dropped.
            #expect(report.violations.isEmpty != isStarted.value, "\(number): \(report)")
        }
    }

    @Test("A stock operation that depends on another one is tried like any other") func dependentOperations() async {
        let report = await OperationContract.report(within: .seconds(20), rounds: 16) {
            let (first, second) = (ForeignOperation(), BlockOperation {})
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.002) { first.start() }
            second.addDependency(first)
            return second
        }
        #expect(report.violations.isEmpty, "\(report)")
    }

    @Test("A class that breaks several rules is found with all of them, unless one spoils the other situations")
    func severalRules() async {
        let several: [([Rule], @Sendable () -> Operation)] = [
            ([.executesWhileWorking, .isAsynchronous, .marksCancellation, .isReleased], { BreakingSeveral() }),
            ([.movesForward, .finishesWhenCancelled], { GoingBackWhenCancelled() }),
            ([.marksCancellation, .finishesWhenCancelled], { NotMarkingWhileWorking() }),
        ]
        for (rules, make) in several { #expect(await self.rules(rules, make) == rules) }
        let spoiling: [(Rule, @Sendable () -> Operation)] = [
            (.finishes, { NeverFinishing() }), (.finishesOnce, { EndingTwice() }),
        ]
        for (rule, make) in spoiling {
            let stopped = await report([rule], make)
            #expect(
                stopped.situations.suffix(2)
                    == ["it is started by hand", "not tried: what is left, because of what was found before"])
        }
    }

    @Test("A class that blocks the thread that asks it is found, and does not hold up the report")
    func blockingClasses() async {
        let cases: [(OperationContract.Rule, @Sendable () throws -> Operation)] = [
            (.isReleased, { BlockingInDeinit(needsWork: false) }), (.isReleased, { BlockingInDeinit(needsWork: true) }),
            (.announcesItsEnd, { AnnouncingUnderLock() }), (.finishesWhenCancelled, { WaitingInCancel() }),
            (
                .isNew,
                {
                    DispatchSemaphore(value: 0).wait()
                    return ForeignOperation()
                }
            ),
        ]
        await inTurns(cases) { rule, make in
            let report = await report([rule], make)
            #expect(report.violations.map(\.rule) == [rule], "\(rule): \(report)")
            #expect(report.situations.last?.hasPrefix("not tried: what is left") == true, "\(report)")
        }
    }

    @Test("A class that is not ready is found, and is not started by hand, which would end the program")
    func notReady() async {
        let cases: [(@Sendable () -> Operation, String)] = [
            ({ NeverReadyMain() }, "It was not ready within 0.2 seconds: its isReady is false."),
            (
                {
                    let (first, second) = (BlockOperation {}, BlockOperation {})
                    first.name = "first"
                    second.addDependency(first)
                    return second
                }, "It was not ready within 0.2 seconds: it depends on “first”, which has not finished."
            ),
            (
                { NotReadyWhenCancelled() },
                "It was cancelled, added to a queue, and was not started within 0.2 seconds: its isReady is false."
            ),
            (
                { NeverReadyAsync() },
                "It was added to a queue, and was not started within 0.2 seconds: its isReady is false."
            ),
            (
                { ReadyLater(announcesIt: false) },
                "It was added to a queue, and was not started within 0.2 seconds: "
                    + "its isReady became true, and the queue was not told."
            ),
        ]
        await inTurns(cases) { make, sentence in
            let report = await report([.becomesReady], make)
            #expect(report.violations.map(\.rule) == [.becomesReady], "\(report)")
            let found = report.violations.first?.sentence.replacing("20.0 seconds", with: "0.2 seconds")
            #expect(found?.replacing("2.0 seconds", with: "0.2 seconds") == sentence)
            if Self.printsMessages {
                print("| `becomesReady` | `\(type(of: make()))` | \(report.violations.first?.description ?? "") |")
            }
        }
    }

    @Test("A class that does not wait for its dependencies is found, and everything else is tried, too")
    func alwaysReady() async {
        await inTurns([{ AlwaysReady() }, { AlwaysReadyAsync() }]) { (make: @escaping @Sendable () -> Operation) in
            let report = await report([.becomesReady], make)
            #expect(
                report.violations.map(\.description) == [
                    "It was ready, and depends on an operation that has not finished. "
                        + "Let isReady be true only if super.isReady is."
                ], "\(report)")
            let last = ["everything else releases it", "16 of them are cancelled at random moments"]
            #expect(report.situations.suffix(2) == last, "\(report)")
        }
    }

    @Test("The same operation made twice is found, and one that was started or cancelled before") func notNew() async {
        let operation = ForeignOperation()
        #expect(await rules([.isNew]) { operation } == [.isNew])
        for spoil: @Sendable (ForeignOperation) -> Void in [{ $0.start() }, { $0.cancel() }, { $0.finish() }] {
            let makes: @Sendable () -> Operation = {
                let operation = ForeignOperation()
                spoil(operation)
                return operation
            }
            #expect(await rules([.isNew], makes) == [.isNew])
        }
    }

    @Test("A sentence says what was done with an operation whose end is not announced, comes twice or keeps it")
    func ends() async {
        let (silent, twice) = ("finished without announcing it.", "its completion block was called twice.")
        let cases: [(Rule, String, @Sendable () -> Operation)] = [
            (.announcesItsEnd, "was cancelled while it worked, and \(silent)", { SilentWhenCancelled(.byHand) }),
            (.announcesItsEnd, "was cancelled while it worked, and \(silent)", { SilentWhenCancelled(.onQueue) }),
            (
                .announcesItsEnd, "was cancelled at a random moment, and \(silent)",
                { SilentWhenCancelled(.onOtherThread) }
            ),
            (.announcesItsEnd, "was cancelled before its start, and \(silent)", { SilentWhenCancelledBefore() }),
            (.announcesItsEnd, "was finished, and an operation that depends on it did not start.", { Silent() }),
            (.finishesOnce, "was cancelled while it worked, and \(twice)", { EndingTwiceWhenCancelled() }),
            (.finishesOnce, "was cancelled while it worked, and \(twice)", { EndingAgainLate() }),
            (.finishesOnce, "was cancelled after its end, and \(twice)", { EndingTwiceAfterItsEnd() }),
            (.isReleased, "was finished, and", { Leaking() }),
            (.isReleased, "was cancelled while it worked, and finished, and", { LeakingWhenCancelled() }),
        ]
        await inTurns(cases) { rule, sentence, make in
            let report = await report([rule], make)
            let (rules, found) = (report.violations.map(\.rule), report.violations.first?.sentence)
            #expect(rules == [rule] && found?.hasPrefix("It \(sentence)") == true, "\(report)")
        }
    }

    @Test("A start() that goes on after the end is found, when it is started by hand and when it is measured")
    func blockingAfterItsEnd() async {
        // Eleven work before start() is measured.
        for count in [0, 11] {
            let works = Shared(0)
            let report = await report([.doesNotBlock]) {
                BlockingAfterItsEnd {
                    works.change { works in
                        works += 1
                        return works > count
                    }
                }
            }
            #expect(report.violations.map(\.rule) == [.doesNotBlock], "\(report)")
            let sentence = report.violations.first?.sentence
            #expect(sentence?.hasPrefix("It was finished, and its start() did not return within ") == true, "\(report)")
        }
    }

    #if DEBUG
    @Test("A class that calls super.main() is found")
    func callingSuper() async {
        let violations = await report([.usesTheLibrary]) { CallingSuper() }.violations
        #expect(violations.map(\.rule) == [.usesTheLibrary])
        #expect(violations.first?.description.contains("super.main") == true)
    }
    #endif

    @Test("The hand-written classes of the wild are found out")
    func wildClasses() async {
        let cases: [([OperationContract.Rule], @Sendable () -> Operation)] = [
            ([.finishesWhenCancelled], { HandWritten() }), ([.waitsForItsStart], { BlogOperationEndingInCancel() }),
            ([.finishesWhenCancelled], { BlogOperationWithoutEnd() }),
            ([.marksCancellation], { BlogOperationNotMarking() }),
            // It hangs or takes its end back, whichever comes first.
            ([.survivesRaces, .movesForward], { BlogOperationRacing() }),
        ]
        await inTurns(cases) { rules, make in
            // A race of such a class may break other rules, too, and a busy machine any if the limit is short.
            for limit in [Self.limit, .seconds(2), .seconds(20)] {
                let report = await OperationContract.report(within: limit, rounds: 64, make)
                let isFound = report.violations.contains { rules.contains($0.rule) }
                if isFound { break }
                #expect(limit < .seconds(20), "\(type(of: make())): \(report)")
            }
        }
    }

    @Test("A lost finish, a missing input and a missing output are found, also inside a composite")
    func libraryRules() async {
        let mistakes: [@Sendable () -> Operation] = [
            { AsyncBlockOperation { _ in } }, { WithoutOutput() }, { EmptyWhenCancelled() }, { Echo() },
            { Preparing { AsyncBlockOperation { _ in } } }, { Preparing { Echo() } },
        ]
        await inTurns(mistakes) { make in
            #expect(await rules([.usesTheLibrary], make) == [.usesTheLibrary], "\(type(of: make()))")
        }
        let child = AsyncOperation()
        #expect(await rules([.usesTheLibrary]) { Preparing { child } } == [.usesTheLibrary])
    }

    @Test("A composite whose children go on when it is cancelled is found, with its children")
    func deafChildren() async throws {
        let violations = await report([.finishesWhenCancelled]) { Preparing { NotStopping() } }.violations
        #expect(violations.map(\.rule) == [.finishesWhenCancelled])
        let text = try #require(violations.first?.description)
        // One of the two may have been cancelled before its start.
        #expect(text.contains("\n  “sync”: ") && text.contains("\n    “NotStopping "), "\(text)")
    }

    /// `CONTRACT_RUNS=1000` tries all operations of the library that often, as is done at night.
    @Test("A class that keeps the rules is not accused")
    func correctClasses() async {
        let runs = ProcessInfo.processInfo.environment["CONTRACT_RUNS"].flatMap { Int($0) } ?? 1
        for run in 0..<runs {
            await inTurns(CorrectOperations.makers) { make in
                let report = await OperationContract.report(rounds: 8, make)
                #expect(report.violations.isEmpty, "run \(run), \(type(of: make())): \(report)")
            }
        }
    }

    @Test("The completion block of an operation is called, and may give back what others need")
    func ownCompletionBlock() async {
        let permits = DispatchSemaphore(value: 0)
        permits.signal()
        let report = await report([]) {
            let operation = BlockOperation { permits.wait() }
            operation.completionBlock = { permits.signal() }
            return operation
        }
        #expect(report.violations.isEmpty, "\(report)")
    }

    @Test("The guide shows the message as it is printed")
    func guide() async throws {
        let report = await report([.finishesWhenCancelled]) { NotStopping() }
        let message = try #require(report.violations.first).description.replacing(
            /(0.2|20.0) seconds/, with: "2.0 seconds")
        let guide = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/OperationKitTesting/OperationKitTesting.docc/TestingYourOperations.md")
        #expect(try String(contentsOf: guide, encoding: .utf8).contains("```text\n\(message)\n```"))
    }

    @Test("A class that ignores dependencies, and is not ready once it is cancelled, is not blamed for what follows")
    func readyUnlessCancelled() async {
        let report = await report([.becomesReady]) { ReadyUnlessCancelled() }
        #expect(report.violations.map(\.rule) == [.becomesReady], "\(report)")
        let left = ["releasing it after a cancellation", "cancellations at random moments"]
        #expect(
            report.situations.suffix(2) == left.map { "not tried: \($0), because of what was found before" },
            "\(report)")
    }
}
