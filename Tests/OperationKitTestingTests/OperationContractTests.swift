import Foundation
import OperationKit
import OperationKitTesting
import Testing

@Suite("Contract of operations", .serialized, .timeLimit(.minutes(10)))
struct OperationContractTests {
    private typealias Rule = OperationContract.Rule
    private static let limit = Duration.milliseconds(400)

    private func rules(_ make: @escaping @Sendable () -> Operation) async -> [OperationContract.Rule] {
        let report = await OperationContract.report(within: Self.limit, rounds: 64, make)
        return report.violations.map(\.rule)
    }

    @Test("A class that breaks a rule is found, and of no other rule that does not follow from it")
    func brokenClasses() async {
        let cases: [(OperationContract.Rule, also: Set<OperationContract.Rule>, @Sendable () -> Operation)] = [
            (.finishes, [], { NeverFinishing() }),
            (.executesWhileWorking, [], { NotExecuting() }),
            (.doesNotBlock, [], { Blocking() }),
            (.isAsynchronous, [], { NotAsynchronous() }),
            (.announcesItsEnd, [], { Silent() }),
            (.movesForward, [], { GoingBack() }),
            (.marksCancellation, [], { NotMarking() }),
            (.finishesWhenCancelledBefore, [], { DeafWhenCancelledBefore() }),
            (.waitsForItsStart, [], { FinishingInCancel() }),
            (.doesNotWorkWhenCancelledBefore, [], { WorkingWhenCancelledBefore() }),
            (.finishesWhenCancelled, [], { ForgettingAfterCancellation() }),
            (.isReleased, [], { Leaking() }),
            (.finishesWhenCancelled, [], { NotStopping() }),
        ]
        for (rule, others, make) in cases {
            let found = await rules(make)
            #expect(found.contains(rule), "\(rule) is not among \(found)")
            #expect(Set(found).subtracting(others).subtracting([rule]).isEmpty, "\(rule): \(found)")
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

    @Test("A lost finish and a missing output are found")
    func libraryRules() async {
        let lost = await rules { AsyncBlockOperation { _ in } }
        #expect(lost == [.usesTheLibrary])
        final class NoOutput: IOOperation<Void, Int>, @unchecked Sendable {
            override func main(input: Void) { finish(withError: nil) }
        }
        #expect(await rules { NoOutput() } == [.usesTheLibrary])
        #expect(await rules { IOBlockOperation<Int, Int> { $0 } } == [.usesTheLibrary])
    }

    @Test("A class that keeps the rules is not accused")
    func correctClasses() async {
        let makers: [@Sendable () -> Operation] = [
            { ForeignOperation() }, { BlockOperation {} }, { AsyncOperation() },
            { AsyncBlockOperation { finish in DispatchQueue.global().async { finish() } } },
            { ThrowingBlockOperation {} }, { TaskOperation { try await Task.sleep(for: .milliseconds(2)) } },
            { CompoundOperation(operations: [AsyncOperation(), BlockOperation {}, TaskOperation { 1 }]) },
            { MacroOperation(IOBlockOperation<Int, Int> { $0 }).then(IOBlockOperation { $0 + 1 }).with(input: 1) },
            { Waterfall<Int, Int>().then { $0 + 1 }.thenAwait { $0 }.with(input: 1) },
            { RetryOperation(RetryPolicy(backoff: .none)) { _ in TaskOperation { 1 } } },
            { RepeatOperation(every: .milliseconds(1), maximumCount: 2) { _ in TaskOperation { 1 } } },
            { HedgedOperation(after: .milliseconds(1)) { _ in TaskOperation { 1 } } },
            { [TaskOperation { 1 }, TaskOperation { 2 }].gathered() },
            { MapOperation<Int, Int> { $0 }.with(input: [1, 2]) },
            { TaskOperation { 1 }.map { $0 + 1 }.recover { _ in 2 } },
            { DelayOperation(for: .milliseconds(2)) },
        ]
        for make in makers {
            let report = await OperationContract.report(rounds: 64, make)
            #expect(report.violations.isEmpty, "\(type(of: make())): \(report)")
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
