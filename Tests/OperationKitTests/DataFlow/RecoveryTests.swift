import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Operations that run in place of one that failed.
@Suite("Recovery by an operation", .hangGuard) struct RecoveryTests {
    private static func failing(_ name: String = "source") -> Step<Int, Int> {
        Step(name) { step, input in elsewhere { step.finish(withError: TestError.numbered(input)) } }
    }

    @Test("The operation that `recoverRun` makes runs in place of the one that failed", arguments: Start.allCases)
    func recovery(start: Start) async {
        let log = EventLog()
        let recovered = Self.failing().recoverRun { error in
            log.add(text(error))
            return Step<Int, Int>.increment("made", log: log).with(input: 4)
        }
        await start(recovered.with(input: 3))
        #expect(recovered.output == 5 && recovered.error == nil && log.events == ["numbered(3)", "made"])
    }

    @Test("`recoverRun` is asked neither after a success nor for a cancelled source")
    func notAsked() async {
        let log = EventLog()
        func recovered(_ source: Step<Int, Int>) -> IOOperation<Int, Int> {
            source.recoverRun { _ in
                log.add("recover")
                return TaskOperation { 0 }
            }.with(input: 1)
        }
        let successful = recovered(Step.increment("source"))
        let cancelled = recovered(Step { step, _ in step.cancel() })
        let missing = recovered(Step.increment("source"))
        missing.input = nil
        for operation in [successful, cancelled, missing] { await Start.byHand(operation) }
        #expect(successful.output == 2 && cancelled.error is CancellationError && log.events.isEmpty)
        #expect(missing.error as? IOOperationError == .missingInput(operation: "source"))
    }

    @Test("An error that `recoverRun` throws, or that its operation ends with, is the error")
    func failures() async {
        let throwing = Self.failing().recoverRun { _ -> TaskOperation<Int> in throw TestError.first }
        let failing = Self.failing().recoverRun { _ in TaskOperation<Int> { throw TestError.second } }
        for operation in [throwing, failing] { await Start.byHand(operation.with(input: 1)) }
        #expect(text(throwing.error) == "first" && text(failing.error) == "second")
    }

    @Test(
        "A recovery is not asked when it is cancelled before the start, or while its source runs",
        arguments: [true, false])
    func cancelledEarly(beforeStart: Bool) async {
        let (log, began) = (EventLog(), Gate())
        let recovered = Step<Int, Int>("source") { _, _ in began.open() }.recoverRun { _ in
            log.add("recover")
            return TaskOperation { 0 }
        }.with(input: 1)
        if beforeStart { recovered.cancel() }
        recovered.start()
        if !beforeStart {
            await began.opened()
            recovered.cancel()
        }
        await #expect(throws: CancellationError.self) { try await recovered.value }
        #expect(log.events.isEmpty)
    }

    @Test(
        "A recovery that returns what contains it, its source, or an operation of another, is an error with both names")
    func containment() async {
        let around = Shared<IOOperation<Int, Int>?>(nil)
        let inner = Self.failing("inner").recoverRun { _ in try #require(around.value) }
        let outer = inner.map { $0 }.with(input: 0)
        outer.name = "outer"
        around.value = outer
        await Start.byHand(outer)
        #expect(outer.error as? CompoundAdditionError == .alreadyAdded(operation: "outer", compound: "inner"))
        let itself = Self.failing("itself").recoverRun { _ in try #require(around.value) }.with(input: 0)
        around.value = itself
        await Start.byHand(itself)
        around.value = nil
        #expect(itself.error as? CompoundAdditionError == .alreadyAdded(operation: "itself", compound: "itself"))
        #expect(itself.error?.localizedDescription.contains(", is or contains “itself”, ") == true)
        let source = Self.failing("source")
        let same = source.recoverRun { [unowned source] _ in source }.with(input: 0)
        same.name = "same"
        await Start.byHand(same)
        #expect(same.error as? CompoundAdditionError == .alreadyAdded(operation: "source", compound: "same"))
        let child = Step<Int, Int>.increment("child").with(input: 1)
        let compound = CompoundOperation(operations: [child])
        let other = Self.failing("other").recoverRun { _ in child }.with(input: 0)
        await Start.byHand(other)
        #expect(other.error as? CompoundAdditionError == .alreadyAdded(operation: "child", compound: "other"))
        await Start.byHand(compound)
        #expect(child.output == 2)
    }

    @Test("A recovery that returns a composite that is executing is an error, because that may be waiting for it")
    func executingComposite() async {
        let began = Gate()
        let macro = MacroOperation(Step<Int, Int>("step") { _, _ in began.open() }).with(input: 1)
        macro.name = "macro"
        macro.start()
        await began.opened()
        let recovered = Self.failing().recoverRun { _ in macro }.with(input: 0)
        await Start.byHand(recovered)
        #expect(recovered.error as? CompoundAdditionError == .alreadyAdded(operation: "macro", compound: "source"))
        #expect(recovered.error?.localizedDescription.contains(", or may wait for “source”. ") == true)
        macro.cancel()
        await #expect(throws: CancellationError.self) { try await macro.value }
    }

    @Test("An operation that waits for the recovering one is a cycle, reported with both names") func cycle() async {
        let made = Step<Int, Int>.increment("made").with(input: 0)
        let recovered = Self.failing("source").recoverRun { _ in made }.with(input: 0)
        made.addDependency(recovered)
        await Start.byHand(recovered)
        guard case .dependencyCycle("source", ["made", "source"])? = recovered.error as? CompoundOperationError else {
            Issue.record("\(text(recovered.error))")
            return
        }
        made.removeDependency(recovered)
    }

    @Test("`recoverRun` is asked for a source that was cancelled with a reason, as `recover` is") func reason() async {
        func source() -> Step<Int, Int> { Step("source") { step, _ in step.cancel(withError: TestError.reason) } }
        let (errors, value) = (EventLog(), TaskOperation { 5 })
        let operations = [
            source().recover { error in
                errors.add(text(error))
                return 5
            },
            source().recoverRun { error in
                errors.add(text(error))
                return value
            },
        ]
        for operation in operations { await Start.byHand(operation.with(input: 0)) }
        #expect(operations.map(\.output) == [5, 5] && errors.events == ["reason", "reason"])
    }

    @Test("A source that fails although its recovery was cancelled is not recovered, and its error stands")
    func cancelledAndFailed() async {
        let (began, log, source) = (Gate(), EventLog(), ScriptedSource())
        source.began = began
        let recovered = source.recoverRun { _ in
            log.add("recover")
            return TaskOperation { 0 }
        }.with(input: 0)
        recovered.start()
        await began.opened()
        recovered.cancel()
        source.finish(withError: TestError.first)
        await #expect(throws: TestError.first) { try await recovered.value }
        #expect(log.events.isEmpty)
    }

    /// Goes on when it is cancelled, until it is finished.
    private final class ScriptedSource: IOOperation<Int, Int>, @unchecked Sendable {
        var began: Gate?
        override func main(input: Int) { began?.open() }
    }

    @Test("What did not run because of another operation counts with that one, recovered in vain or not") func blocked()
        async
    {
        let first = ScriptedOperation("first") { $0.finish(withError: TestError.first) }
        let (source, made) = (Step.increment("source").with(input: 0), Step.increment("made").with(input: 0))
        for operation in [source, made] { operation.requireSuccess(of: first) }
        let recovered = source.recoverRun { _ in made }.with(input: 0)
        let compound = CompoundOperation(operations: [first, recovered])
        await Start.byHand(compound)
        let errors = (compound.error as? CompoundOperationError)?.suboperationErrors ?? []
        #expect(errors.map(\.name) == ["first"] && errors.map(\.blockedCount) == [1])
    }

    @Test("A description has the operation that runs, and nothing else") func description() async {
        let (began, second) = (Gate(), Gate())
        let source = Step<Int, Int>("source") { _, _ in began.open() }
        let recovered = source.recoverRun { _ in Step<Void, Int>("made") { _, _ in second.open() } }.with(input: 1)
        recovered.name = "recovered"
        #expect(withoutAges(recovered).split(separator: "\n").count == 2, "\(withoutAges(recovered))")
        recovered.start()
        await began.opened()
        #expect(withoutAges(recovered).split(separator: "\n").count == 2, "\(withoutAges(recovered))")
        source.finish(withError: TestError.first)
        await second.opened()
        // That the first one is over is known there a moment later.
        await eventually("is \(withoutAges(recovered))") {
            let lines = withoutAges(recovered).split(separator: "\n")
            return lines.count == 2 && lines.last?.contains("made") == true
        }
        recovered.cancel()
        await #expect(throws: CancellationError.self) { try await recovered.value }
    }

    @Test("The recovery's operation counts in the progress") func progress() async {
        let seen = Shared<[Double]>([])
        let holder = Shared<Progress?>(nil)
        let look: @Sendable () -> Void = { seen.change { $0.append(holder.value?.fractionCompleted ?? -1) } }
        let recovered = Self.failing().recoverRun { _ in
            Step<Void, Int> { step, _ in
                step.progress.totalUnitCount = 2
                step.progress.completedUnitCount = 1
                look()
                step.finish(with: 1)
            }
        }.with(input: 1)
        holder.value = recovered.progress
        await Start.byHand(recovered)
        // Half of the last tenth.
        #expect(seen.value.count == 1 && seen.value.allSatisfy { abs($0 - 0.95) < 0.000_001 }, "\(seen.value)")
        #expect(recovered.progress.fractionCompleted == 1)
        let successful = Step<Int, Int>.increment("source").recoverRun { _ in TaskOperation { 1 } }.with(input: 1)
        let progress = successful.progress
        await Start.byHand(successful)
        #expect(progress.fractionCompleted == 1)
    }
}
