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

    @Test("A second input from an operation that is no step is an error with its name") func secondInput() async {
        let first = Step<Int, Int>.increment("first")
        let outside = Step<Int, Int>.increment("outside")
        let sum = IOBlockOperation<(Int, Int), Int> { $0 + $1 }
        let macro = MacroOperation(first).then(sum, inputFrom: first, outside).with(input: 1)
        macro.name = "macro"
        await Start.byHand(macro)
        #expect(macro.error as? ChainError == .notAStep(operation: "outside", chain: "macro"))
    }

    @Test("Calling `main()` by hand after the end does nothing") func mainAfterTheEnd() async throws {
        let log = EventLog()
        let task = TaskOperation { log.add("task") }
        let closure = IOTaskOperation<Int, Int> { (number: Int) in
            log.add("closure")
            return number
        }.with(input: 1)
        let throwing = ThrowingBlockOperation { log.add("throwing") }
        let run = Strategy.sequentialItems.make { _, completion in
            log.add("item")
            completion(nil)
        }.makeOperation(on: [1])
        let queue = OperationQueue.serial(name: "serial")
        for operation in [task, closure, throwing, run] {
            try await queue.run(operation)
            operation.main()
            operation.main()
        }
        #expect(log.events == ["task", "closure", "throwing", "item"])
    }

    /// One operation of each class of the library that seals its `main()`, with a call of `main(input:)` where there is
    /// one.
    private static func sealed(_ log: EventLog) -> [(operation: AsyncOperation, mainWithInput: () -> Void)] {
        let task = TaskOperation { log.add("task") }
        let closure = IOBlockOperation<Int, Int> { (number: Int) in
            log.add("closure")
            return number
        }.with(input: 1)
        let block = AsyncBlockOperation { finish in
            log.add("block")
            finish(nil)
        }
        let step = Step<Int, Int>.increment("step", log: log).with(input: 1)
        let macro = MacroOperation(Step<Int, Int>.increment("macro", log: log)).with(input: 1)
        let mapped = Step<Int, Int>.increment("mapped", log: log).map { $0 }.with(input: 1)
        let waterfall = Waterfall<Int, Int>().then { (number: Int) in
            log.add("waterfall")
            return number
        }.with(input: 1)
        let compound = CompoundOperation(operations: [BlockOperation { log.add("compound") }])
        let run = Strategy.sequentialItems.make { _, completion in
            log.add("run")
            completion(nil)
        }.makeOperation(on: [1])
        return [
            (task, { task.main(input: ()) }), (closure, { closure.main(input: 2) }), (block, {}), (step, {}),
            (macro, { macro.main(input: 2) }), (mapped, { mapped.main(input: 2) }),
            (waterfall, { waterfall.main(input: 2) }), (compound, {}), (run, { run.main(input: [2]) }),
        ]
    }

    @Test("main() of the library's own classes does nothing when it is called by hand")
    func mainByHand() async throws {
        let log = EventLog()
        for (operation, mainWithInput) in Self.sealed(log) {
            operation.main()
            mainWithInput()
            #expect(log.events.isEmpty && !operation.isFinished)
            try await OperationQueue().run(operation)
            operation.main()
            mainWithInput()
            #expect(log.events.count == 1 && operation.isFinished)
            log.clear()
        }
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

    @Test("Starting a consumed macro or waterfall, or calling its `main()`, runs nothing") func consumed() async {
        let log = EventLog()
        let macro = MacroOperation(Step<Int, Int>.increment("step", log: log)).with(input: 1)
        let waterfall = Waterfall<Int, Int>().with(input: 1)
        let longer = (macro.then(Step<Int, Int>.increment("next", log: log)), waterfall.then { $0 + 1 })
        for operation in [macro, waterfall] as [IOOperation<Int, Int>] {
            await Start.byHand(operation)
            operation.main()
            #expect(operation.output == nil)
        }
        #expect(log.events.isEmpty)
        withExtendedLifetime(longer) {}
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
