import Foundation
import OperationKit
import OperationKitTesting
import Testing

@Suite("Contract of operations", .serialized, .timeLimit(.minutes(60)))
struct OperationContractTests {
    private typealias Rule = OperationContract.Rule
    private static let limit = Duration.milliseconds(200)

    private func rules(_ make: @escaping @Sendable () -> Operation) async -> [OperationContract.Rule] {
        let report = await OperationContract.report(within: Self.limit, rounds: 64, make)
        return report.violations.map(\.rule)
    }

    @Test("A class that breaks a rule is found, and of no other rule")
    func brokenClasses() async {
        let cases: [(OperationContract.Rule, @Sendable () -> Operation)] = [
            (.finishes, { NeverFinishing() }), (.executesWhileWorking, { NotExecuting() }),
            (.doesNotBlock, { Blocking() }), (.isAsynchronous, { NotAsynchronous() }), (.announcesItsEnd, { Silent() }),
            (.finishesOnce, { EndingTwice() }), (.movesForward, { GoingBack() }),
            (.marksCancellation, { NotMarking() }),
            (.finishesWhenCancelledBefore, { DeafWhenCancelledBefore() }), (.waitsForItsStart, { FinishingInCancel() }),
            (.doesNotWorkWhenCancelledBefore, { WorkingWhenCancelledBefore() }),
            (.finishesWhenCancelled, { ForgettingAfterCancellation() }), (.finishesWhenCancelled, { NotStopping() }),
            (.survivesRaces, { Racing() }), (.isReleased, { Leaking() }),
        ]
        for (rule, make) in cases {
            let violations = await OperationContract.violations(within: Self.limit, rounds: 64, make)
            #expect(violations.map(\.rule) == [rule], "\(rule): \(violations)")
        }
    }

    @Test("The same operation made twice is found")
    func notNew() async {
        let operation = ForeignOperation()
        #expect(await rules { operation } == [.isNew])
    }

    #if DEBUG
    @Test("A class that calls super.main() is found")
    func callingSuper() async {
        let violations = await OperationContract.violations(within: Self.limit, rounds: 8) { CallingSuper() }
        #expect(violations.map(\.rule) == [.usesTheLibrary])
        #expect(violations.first?.description.contains("super.main") == true)
    }
    #endif

    @Test("A hand-written class without a lock is found out")
    func handWritten() async {
        #expect(await rules { HandWritten() }.contains(.finishesWhenCancelled))
    }

    @Test("A lost finish, a missing input and a missing output are found, also inside a composite")
    func libraryRules() async {
        let mistakes: [@Sendable () -> Operation] = [
            { AsyncBlockOperation { _ in } }, { WithoutOutput() }, { EmptyWhenCancelled() }, { Echo() },
            { Preparing { AsyncBlockOperation { _ in } } }, { Preparing { Echo() } },
        ]
        for make in mistakes { #expect(await rules(make) == [.usesTheLibrary], "\(type(of: make()))") }
        let child = AsyncOperation()
        #expect(await rules { Preparing { child } } == [.usesTheLibrary])
    }

    @Test("A composite whose children go on when it is cancelled is found, with its children")
    func deafChildren() async throws {
        let violations = await OperationContract.violations(within: Self.limit, rounds: 8) {
            Preparing { NotStopping() }
        }
        #expect(violations.map(\.rule) == [.finishesWhenCancelled])
        let text = try #require(violations.first?.description)
        // One of the two may have been cancelled before its start.
        #expect(text.contains("\n  “sync”: ") && text.contains("\n    “NotStopping "), "\(text)")
    }

    @Test("A class that keeps the rules is not accused")
    func correctClasses() async {
        let runs = ProcessInfo.processInfo.environment["TEST_EXTENT"] == "long" ? 1_000 : 1
        for run in 0..<runs {
            for make in CorrectOperations.makers {
                let report = await OperationContract.report(rounds: run == 0 ? 64 : 8, make)
                #expect(report.violations.isEmpty, "run \(run), \(type(of: make())): \(report)")
            }
        }
    }

    @Test("A report says what was tried, with the seed")
    func report() async {
        let report = await OperationContract.report(rounds: 4, seed: 7) { AsyncOperation() }
        #expect(report.seed == 7)
        #expect(report.operationCount > 10)
        #expect(report.situations.contains { $0.hasPrefix("not tried: cancelling it while it works") })
        #expect(report.description.contains("seed 7"))
        #expect(Rule.allCases.allSatisfy { !$0.advice.isEmpty })
    }
}
