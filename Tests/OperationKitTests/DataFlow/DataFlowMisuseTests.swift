import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What happens to macros, waterfalls and collection runs that are not used as they should be. The article *Misuse*
/// lists it all.
@Suite("Misuse: data flow and collections", .hangGuard) struct DataFlowMisuseTests {
    /// Something that runs, works until a gate is opened, and is held by nothing.
    enum Dropped: CaseIterable, Sendable {
        case compound, macro, waterfall, map, collection

        func start(_ tracker: LeakTracker, until gate: Gate, then end: @escaping @Sendable () -> Void) {
            let work = IOTaskOperation<Int, Int> { (number: Int) in
                await gate.opened()
                return number
            }
            let next = IOBlockOperation<Int, Int> { $0 + 1 }
            tracker.track(next, "next")
            let operation: AsyncOperation
            switch self {
            case .compound:
                work.input = 1
                next.input = 1
                next.addDependency(work)
                operation = CompoundOperation(operations: [work, next])
            case .macro: operation = MacroOperation(work).then(next).with(input: 1)
            case .waterfall:
                operation = Waterfall<Int, Int>().thenRun { (number: Int) in work.with(input: number) }
                    .thenRun { (number: Int) in next.with(input: number) }.with(input: 1)
            case .map: operation = work.map { $0 + 1 }.with(input: 1)
            case .collection: operation = Waiting(gate).makeOperation(on: [1, 2, 3])
            }
            tracker.track(operation, "operation")
            tracker.track(work, "work")
            operation.asyncCompletionBlock = { error in if error == nil { end() } }
            operation.start()
        }
    }

    private final class Waiting: ParallelItemOperation, AsyncItemOperation {
        let gate: Gate

        init(_ gate: Gate) { self.gate = gate }

        func performOperation(onItem item: Int) async throws { await gate.opened() }
    }

    @Test(
        "A composite that runs goes on although nothing else holds it, and is released after its end",
        arguments: Dropped.allCases
    )
    func dropped(_ dropped: Dropped) async {
        let (tracker, gate, ended) = (LeakTracker(), Gate(), Gate())
        dropped.start(tracker, until: gate) { ended.open() }
        #expect(!ended.isOpen)
        gate.open()
        await ended.opened()
        await tracker.expectAllReleased()
    }

    @Test("An input that is set after the start is not taken") func lateInput() async throws {
        let gate = Gate()
        let step = IOTaskOperation<Int, Int> { (number: Int) in
            await gate.opened()
            return number
        }
        step.input = 1
        step.start()
        step.input = 2
        gate.open()
        #expect(try await step.value == 1)
    }

    @Test("Negative progress weights of steps and jobs count as 0, and the progress is complete after them")
    func negativeWeights() async throws {
        let (log, progress) = (EventLog(), Shared<Progress?>(nil))
        let next: @Sendable (Int) -> Int = { number in
            log.add("\(number): \(progress.value?.fractionCompleted ?? -1)")
            return number + 1
        }
        func step() -> Step<Int, Int> { Step { step, input in step.finish(with: next(input)) } }
        let macro = MacroOperation(step(), progressWeight: -3).then(step(), progressWeight: 2)
            .then(step(), progressWeight: -1).then(step(), progressWeight: 2)
        let waterfall = Waterfall<Int, Int>().then(progressWeight: -3, next).then(progressWeight: 2, next)
            .then(progressWeight: -1, next).then(progressWeight: 2, next)
        for operation in [macro, waterfall] as [IOOperation<Int, Int>] {
            progress.value = operation.progress
            #expect(try await OperationQueue().run(operation.with(input: 0)) == 4)
            #expect(log.events == ["0: 0.0", "1: 0.0", "2: 0.5", "3: 0.5"])
            #expect(operation.progress.fractionCompleted == 1)
            log.clear()
        }
    }

    @Test("Huge progress weights do not overflow") func hugeWeights() async throws {
        let compound = CompoundOperation()
        for _ in 0..<3 { try compound.addOperation(ScriptedOperation { $0.finish() }, progressWeight: .max) }
        let progress = compound.progress
        try await OperationQueue().run(compound)
        #expect(progress.fractionCompleted == 1)
        let waterfall = Waterfall<Int, Int>().then(progressWeight: .max) { $0 + 1 }.then(progressWeight: .max) {
            $0 + 1
        }
        #expect(try await OperationQueue().run(waterfall.with(input: 0)) == 2)
    }

    @Test("A step that waits for its macro is a cycle, reported with both names") func waitsForItsMacro() async throws {
        let step = Step<Int, Int>.increment("step")
        let macro = MacroOperation(step).then(Step<Int, Int>.increment("next"))
        macro.name = "macro"
        step.addDependency(macro)
        let error = await #expect(throws: CompoundOperationError.self) {
            try await OperationQueue().run(macro.with(input: 0))
        }
        guard case .dependencyCycle("macro", let path) = error else { throw try #require(error) }
        #expect(path == ["step", "macro"] && step.isFinished)
    }

    @Test("A job of a nested waterfall that returns the outer one is an error with both names")
    func returnsOuterWaterfall() async throws {
        let outer = Shared<Waterfall<Int, Int>?>(nil)
        let inner = Waterfall<Int, Int>().thenRun { _ in try #require(outer.value) }
        inner.name = "inner"
        let waterfall = Waterfall<Int, Int>().thenRun { number in inner.with(input: number) }
        waterfall.name = "outer"
        outer.value = waterfall
        await #expect(throws: CompoundAdditionError.alreadyAdded(operation: "outer", compound: "inner")) {
            try await OperationQueue().run(waterfall.with(input: 0))
        }
        outer.value = nil
    }

    @Test("A progress without units is complete at success") func noUnits() async throws {
        let operation = ScriptedOperation {
            $0.progress.totalUnitCount = 0
            $0.finish()
        }
        let progress = operation.progress
        try await OperationQueue().run(operation)
        #expect(progress.fractionCompleted == 1 && progress.isFinished)
    }
}
