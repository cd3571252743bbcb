import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Macros and waterfalls that are continued, started or taken apart at the wrong time. The article *Misuse* lists it
/// all.
@Suite("Misuse: continuing macros and waterfalls", .hangGuard) struct ContinuationMisuseTests {
    @Test("A step that is appended to a cancelled macro is cancelled; the longer macro ends with `CancellationError`")
    func cancelledMacro() async {
        let macro = MacroOperation(Step<Int, Int>.increment("first"))
        macro.cancel()
        let next = Step<Int, Int>.increment("next")
        let longer = macro.then(next)
        #expect(next.isCancelled)
        longer.input = 1
        await Start.byHand(longer)
        #expect(longer.error is CancellationError)
    }

    @Test("`then` on a macro or waterfall that runs is an error with its name, and leaves it alone")
    func running() async {
        let (stepBegan, jobBegan) = (Gate(), Gate())
        let step = Step<Int, Int>("step") { _, _ in stepBegan.open() }
        let macro = MacroOperation(step).with(input: 1)
        macro.name = "macro"
        let waterfall = Waterfall<Int, Int>(name: "waterfall").thenRun { (_: Int) in
            IOTaskOperation<Int, Int> { (number: Int) in
                jobBegan.open()
                await Gate().opened()
                return number
            }.with(input: 1)
        }.with(input: 1)
        macro.start()
        waterfall.start()
        await stepBegan.opened()
        await jobBegan.opened()
        #expect(waterfall.isRunning && macro.isExecuting && step.isExecuting)
        let longerMacro = macro.then(Step<Int, Int>.increment("next")).with(input: 1)
        let longerWaterfall = waterfall.then { $0 + 1 }.with(input: 1)
        await Start.byHand(longerMacro)
        await Start.byHand(longerWaterfall)
        #expect(longerMacro.error as? ChainError == .alreadyStarted(chain: "macro"))
        #expect(longerWaterfall.error as? ChainError == .alreadyStarted(chain: "waterfall"))
        #expect(
            longerMacro.error?.localizedDescription
                == "The steps or jobs that were added to “macro” did not run, because it had been started before. "
                + "Add all of them before the start.")
        waterfall.cancel()
        step.finish(with: 2)
        await #expect(throws: CancellationError.self) { try await waterfall.finished() }
        await #expect(throws: Never.self) { try await macro.finished() }
        #expect(macro.output == 2)
    }

    @Test("`then` on a macro or waterfall that is a child of a compound is an error with its name")
    func childOfACompound() async {
        let macro = MacroOperation(Step<Int, Int>.increment("step"))
        macro.name = "macro"
        let waterfall = Waterfall<Int, Int>(name: "waterfall")
        let compound = CompoundOperation(operations: [macro, waterfall])
        let longerMacro = macro.then(Step<Int, Int>.increment("next")).with(input: 1)
        let longerWaterfall = waterfall.then { $0 + 1 }.with(input: 1)
        await Start.byHand(longerMacro)
        await Start.byHand(longerWaterfall)
        #expect(longerMacro.error as? ChainError == .alreadyUsed(operation: "macro", chain: "macro"))
        #expect(longerWaterfall.error as? ChainError == .alreadyUsed(operation: "waterfall", chain: "waterfall"))
        #expect(
            longerMacro.error?.localizedDescription
                == "“macro” cannot be continued or added as a step, because it is part of another operation. "
                + "Create a new one.")
        withExtendedLifetime(compound) {}
    }

    @Test("A step that is started by hand too early ends with `CancellationError`, and so does its macro")
    func startedTooEarly() async {
        let first = Step<Int, Int>("first") { _, _ in }
        let second = Step<Int, Int>.increment("second")
        let macro = MacroOperation(first).then(second).with(input: 1)
        macro.start()
        second.start()
        #expect(second.error is CancellationError)
        #expect(!macro.isFinished)
        first.finish(with: 2)
        await #expect(throws: CancellationError.self) { try await macro.finished() }
    }

    @Test("A step that is started by hand after a failure ends with that error, and so does its macro")
    func startedAfterAFailure() async {
        let first = Step<Int, Int>("first") { step, _ in step.finish(withError: TestError.first) }.with(input: 1)
        let second = Step<Int, Int>.increment("second")
        let macro = MacroOperation(first).then(second).with(input: 1)
        first.start()
        second.start()
        #expect(text(second.error) == "first")
        await Start.byHand(macro)
        #expect(text(macro.error) == "first")
    }

    @Test("main() of a compound that is called by hand while it runs does not run the children again")
    func mainWhileItRuns() async throws {
        let log = EventLog()
        let child = ScriptedOperation { _ in log.add("child") }
        let compound = CompoundOperation(operations: [child])
        compound.start()
        compound.main()
        await eventually("not begun") { log.events == ["child"] }
        compound.main()
        child.finish()
        try await compound.finished()
        #expect(log.events == ["child"])
    }

    @Test(
        "A binding whose source is gone ends the target with an error that names the source",
        arguments: ["source", nil]
    )
    func sourceIsGone(name: String?) {
        let target = ScriptedOperation("target")
        do {
            let source = ScriptedOperation(name)
            target.bind(to: source) { _, _ in Issue.record("It is carried out.") }
            target.removeDependency(source)
        }
        target.start()
        guard case .dependencyUnfinished("target", name ?? "ScriptedOperation") = target.error as? DependencyError
        else {
            Issue.record("\(text(target.error))")
            return
        }
    }
}
