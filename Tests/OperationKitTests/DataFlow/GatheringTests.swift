import OperationKitTestSupport

@Suite("Gathered outputs", .hangGuard) struct GatheringTests {
    @Test("The outputs come in the order of the operations, however these end") func order() async {
        let first = Gate()
        let steps = (0..<4).map { number in
            TaskOperation {
                // The first one ends last.
                if number == 0 { await first.opened() }
                if number == 3 { first.open() }
                return number * 10
            }
        }
        let gathered = steps.gathered(name: "all")
        await Start.onBusyQueue(gathered)
        #expect(gathered.output == [0, 10, 20, 30] && gathered.error == nil && gathered.name == "all")
    }

    @Test("No operations have no outputs, and optional and `Void` outputs count") func special() async {
        let none = [TaskOperation<Int>]().gathered()
        let optionals = [TaskOperation<Int?> { nil }, TaskOperation<Int?> { 1 }].gathered()
        let voids = [TaskOperation<Void> {}, TaskOperation<Void> {}].gathered()
        for operation in [none, optionals, voids] as [AsyncOperation] { await Start.byHand(operation) }
        #expect(none.output == [] && optionals.output == [nil, 1] && voids.output?.count == 2)
    }

    @Test(
        "All failures of gathered operations arrive as one error, in their order, or the first one if that cancels the others",
        arguments: [FailurePolicy.continueAll, .cancelRemaining])
    func failures(policy: FailurePolicy) async {
        let steps = [
            Step.failing("a").with(input: 1), Step<Int, Int>.increment("b").with(input: 1), Step.increment("c"),
        ]
        let gathered = steps.gathered(name: "all", maxConcurrentOperationCount: 1, failurePolicy: policy)
        await Start.byHand(gathered)
        let continues = policy == .continueAll
        #expect(brief(gathered.error) == (continues ? "all failed [0 a, 2 c]" : "all failed [0 a]"))
        let missing = IOOperationError.missingInput(operation: "c")
        #expect(
            steps.map { text($0.error) } == ["first"]
                + (continues ? ["success", text(missing)] : ["cancelled", "cancelled"]))
        #expect(gathered.output == nil)
    }

    @Test("A gathered operation that succeeds without an output has failed, by name") func noOutput() async {
        let operations = [
            OwnOutputOperation("a", output: 1), OwnOutputOperation("b"), OwnOutputOperation("c", .first),
            OwnOutputOperation("d"),
        ]
        let gathered = operations.gathered(name: "all")
        await Start.byHand(gathered)
        #expect(brief(gathered.error) == "all failed [1 b, 2 c, 3 d]")
        let error = gathered.error as? CompoundOperationError
        #expect(error?.leafErrors.first as? IOOperationError == .missingOutput(operation: "b"))
        let (login, skipped) = (Step<Void, Int>.failing("login"), OwnOutputOperation("skipped", output: 1))
        skipped.requireSuccess(of: login)
        let group = [OwnOutputOperation("b"), skipped].gathered(name: "group")
        let compound = CompoundOperation(name: "compound", operations: [login, group])
        await Start.byHand(compound)
        #expect(brief(compound.error) == "compound failed [0 login, 1 group]")
        let held = OwnOutputOperation("held", isHeld: true)
        let cancelled = [held].gathered(name: "all")
        cancelled.start()
        await eventually("it does not execute") { held.isAtWork }
        cancelled.cancel()
        try? await cancelled.finished()
        #expect(held.error == nil && brief(cancelled.error) == "all cancelled []")
    }

    @Test("An operation that is gathered twice is an error with its name, and none runs") func rejected() async {
        let log = EventLog()
        let (shared, other) = (Step<Int, Int>.increment("a", log: log), Step<Int, Int>.increment("b", log: log))
        for gathered in [[shared, other, shared], [shared]].map({ $0.gathered(name: "all") }) {
            await Start.byHand(gathered)
            #expect(gathered.error as? CompoundAdditionError == .alreadyAdded(operation: "a", compound: "all"))
        }
        #expect(log.events.isEmpty && shared.isFinished && other.isFinished)
    }

    @Test("Gathered operations start after what they wait for; a cycle is an error") func dependencies() async {
        for isCycle in [false, true] {
            let log = EventLog()
            let steps = ["a", "b", "c"].map { Step<Int, Int>.increment($0, log: log).with(input: 0) }
            for index in isCycle ? 0..<3 : 0..<2 { steps[index].addDependency(steps[(index + 1) % 3]) }
            let gathered = steps.gathered(name: "all")
            await Start.byHand(gathered)
            #expect(log.events == (isCycle ? [] : ["c", "b", "a"]))
            #expect(brief(gathered.error).hasPrefix(isCycle ? "all cycle [" : "success"))
        }
    }

    @Test("Cancelled before its start, it ends as cancelled, even if there is nothing to do", arguments: [false, true])
    func cancelledBeforeStart(hasReason: Bool) async {
        let gathered = [IOOperation<Void, Int>]().gathered(name: "all")
        if hasReason { gathered.cancel(withError: TestError.reason) } else { gathered.cancel() }
        let compound = CompoundOperation(operations: [gathered])
        await Start.byHand(compound)
        #expect(brief(gathered.error) == (hasReason ? "all cancelled (reason) []" : "all cancelled []"))
        #expect(gathered.output == nil && gathered.isCancelled && (compound.error != nil) == hasReason)
    }
}

/// Of a class that is no `IOOperation`: has its output, or none, from the beginning, and then ends, or is held until it is cancelled.
final class OwnOutputOperation: AsyncOperation, OutputOperation, @unchecked Sendable {
    let output: Int?
    private let failure: TestError?
    private let isHeld: Bool

    init(_ name: String, output: Int? = nil, _ failure: TestError? = nil, isHeld: Bool = false) {
        (self.output, self.failure, self.isHeld) = (output, failure, isHeld)
        super.init()
        self.name = name
    }

    override func main() { if !isHeld { finish(withError: failure) } }
    override func didCancel() { finish() }
}
