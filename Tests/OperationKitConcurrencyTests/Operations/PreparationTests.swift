import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// What takes time between `start()` and `main()`.
@Suite("Preparations", .hangGuard) struct PreparationTests {
    private let log = EventLog()

    /// An operation that has started, and waits.
    private func waiting(
        _ preparation: HeldPreparation, main: @escaping ScriptedOperation.Script = { $0.finish() }
    ) -> ScriptedOperation {
        let operation = ScriptedOperation.logged(log, main: main)
        operation.addPreparation(preparation)
        operation.start()
        #expect(operation.isExecuting && !operation.isFinished && preparation.isBegun)
        return operation
    }

    /// A compound with a child, which has started, and waits.
    private func waitingCompound(_ preparation: HeldPreparation) -> (CompoundOperation, child: ScriptedOperation) {
        let child = ScriptedOperation.logged(log)
        let compound = CompoundOperation(operations: [child])
        compound.addPreparation(preparation)
        compound.start()
        return (compound, child)
    }

    @Test("An operation is executing while a preparation takes time, and `main()` comes after it")
    func mainAfterThePreparation() async throws {
        let preparation = HeldPreparation("prepare", log)
        let operation = waiting(preparation)
        #expect(log.events == ["prepare"])
        preparation.end()
        try await operation.finished()
        #expect(log.events == ["prepare", "main", "asyncCompletionBlock success"])
    }

    @Test("`main()` is called on another thread than the one that ends the preparation")
    func mainOnAnotherThread() async throws {
        let threads = Shared<[ObjectIdentifier]>([])
        let note = { @Sendable in threads.change { $0.append(ObjectIdentifier(Thread.current)) } }
        let preparation = HeldPreparation()
        let operation = waiting(preparation) { operation in
            note()
            operation.finish()
        }
        await onThread {
            note()
            preparation.end()
            operation.waitUntilFinished()
        }
        #expect(Set(threads.value).count == 2)
    }

    @Test("A preparation that ends before the thread is back that has begun it lets the operation go on there")
    func earlyEnd() {
        struct EarlyEnd: Preparation {
            let stage = PreparationStage.binding

            func prepare(_ operation: AsyncOperation) -> Bool {
                operation.preparationEnded()
                return false
            }
        }
        let operation = ScriptedOperation.logged(log)
        operation.addPreparation(EarlyEnd())
        operation.addPreparation(EarlyEnd())
        operation.start()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test("Preparations are made one after the other, in the order of their stages and then of their addition")
    func order() async throws {
        let operation = ScriptedOperation.logged(log)
        let preparations = [
            HeldPreparation("3", stage: .release, log), HeldPreparation("1", log), HeldPreparation("2", log),
        ]
        for preparation in preparations { operation.addPreparation(preparation) }
        operation.start()
        for index in [1, 2, 0] {
            let preparation = preparations[index]
            await eventually("not begun") { preparation.isBegun }
            preparation.end()
        }
        try await operation.finished()
        #expect(log.events == ["1", "2", "3", "main", "asyncCompletionBlock success"])
    }

    @Test("An operation that is cancelled while it waits ends immediately, with neither `main()` nor `didCancel()`")
    func cancelledWhileWaiting() {
        let preparation = HeldPreparation("prepare", log)
        let operation = waiting(preparation)
        operation.cancel(withError: TestError.reason)
        #expect(operation.isFinished && operation.error as? TestError == .reason)
        preparation.end()
        #expect(log.events == ["prepare", "asyncCompletionBlock reason", "withdraw prepare"])
    }

    @Test("An operation that is finished while it waits ends immediately, without `main()`")
    func finishedWhileWaiting() {
        let preparation = HeldPreparation("prepare", log)
        let operation = waiting(preparation)
        #expect(operation.finish(withError: TestError.first))
        #expect(operation.isFinished)
        preparation.end(withError: TestError.second)
        #expect(log.events == ["prepare", "asyncCompletionBlock first", "withdraw prepare"])
    }

    @Test("An operation whose preparation fails ends with its error")
    func failedPreparation() {
        let preparation = HeldPreparation("prepare", log)
        let operation = waiting(preparation)
        preparation.end(withError: TestError.first)
        #expect(operation.isFinished && operation.error as? TestError == .first)
    }

    @Test("A second start while an operation waits has no effect") func startedTwice() async throws {
        let preparation = HeldPreparation("prepare", log)
        let operation = waiting(preparation)
        operation.start()
        #expect(log.events == ["prepare"])
        preparation.end()
        try await operation.finished()
        #expect(log.count(of: "main") == 1)
    }

    @Test("A composite that is cancelled while it waits ends after its children, of which none runs")
    func cancelledComposite() async {
        let preparation = HeldPreparation("prepare", log)
        let (compound, child) = waitingCompound(preparation)
        #expect(compound.isExecuting && !child.isExecuting)
        compound.cancel()
        await #expect(throws: CompoundOperationError.self) { try await compound.finished() }
        #expect(child.isFinished && log.count(of: "main") == 0 && log.count(of: "withdraw prepare") == 1)
    }

    @Test("No composite succeeds that is cancelled while it waits, even if all inside has ended before")
    func cancelledCompositesWithoutWork() async {
        func finished() -> IOOperation<Void, Int> {
            let operation = IOBlockOperation<Void, Int> { 1 }
            operation.start()
            return operation
        }
        let operations: [AsyncOperation] = [
            CompoundOperation(), MacroOperation(finished()), Waterfall<Int, Int>().with(input: 1),
            finished().map { _ in 2 }, finished().recoverRun { _ in TaskOperation { 1 } }, [finished()].gathered(),
        ]
        for operation in operations {
            let preparation = HeldPreparation("prepare", log)
            operation.addPreparation(preparation)
            operation.start()
            operation.cancel()
            try? await operation.finished()
            #expect(operation.isFinished && operation.error?.isCancellation == true, "\(type(of: operation))")
        }
    }

    @Test("A composite that is given an outcome while it waits ends with it, after its children")
    func finishedComposite() async {
        let preparation = HeldPreparation("prepare", log)
        let (compound, child) = waitingCompound(preparation)
        compound.finish(withError: TestError.first)
        preparation.end()
        await #expect(throws: TestError.first) { try await compound.finished() }
        #expect(child.isFinished && log.count(of: "main") == 0)
    }

    @Test("A child that waits keeps its place, and is followed by the next one after its end")
    func child() async throws {
        let preparation = HeldPreparation("prepare", log)
        let first = ScriptedOperation.logged(log)
        first.addPreparation(preparation)
        let second = ScriptedOperation { operation in
            self.log.add("second")
            operation.finish()
        }
        let compound = CompoundOperation(operations: [first, second], maxConcurrentOperationCount: 1)
        compound.start()
        await eventually("not begun") { first.withState { $0.lifecycle.isWaiting } }
        #expect(log.events == ["prepare"])
        preparation.end()
        try await compound.finished()
        #expect(log.events == ["prepare", "main", "asyncCompletionBlock success", "second"])
    }

    @Test("The description of an operation that waits says for what") func description() {
        let preparation = HeldPreparation()
        let operation = waiting(preparation)
        operation.name = "import"
        #expect(operation.debugDescription.hasPrefix("“import”: waiting for the test"))
        operation.cancel()
    }

    @Test("An operation that is dropped while it waits releases what it waits for") func dropped() async {
        let leaks = LeakTracker()
        do {
            let preparation = leaks.track(HeldPreparation("prepare", log))
            _ = leaks.track(waiting(preparation))
        }
        await leaks.expectAllReleased()
        #expect(log.events == ["prepare"])
    }

    @Test("Preparations are released once they have been made, and those that are not needed at the end")
    func release() async throws {
        let leaks = LeakTracker()
        let gate = Gate()
        let operation: ScriptedOperation
        do {
            let preparation = leaks.track(HeldPreparation("prepare", log))
            operation = waiting(preparation) { _ in gate.open() }
            preparation.end()
        }
        await gate.opened()
        await leaks.expectAllReleased()
        operation.finish()
        let cancelled = ScriptedOperation()
        cancelled.addPreparation(leaks.track(HeldPreparation()))
        cancelled.cancel()
        cancelled.start()
        await leaks.expectAllReleased()
    }

    @Test("A preparation that is added after the start is not made") func late() {
        let operation = ScriptedOperation.idle()
        #expect(operation.addPreparation(HeldPreparation("prepare", log)))
        operation.start()
        #expect(!operation.addPreparation(HeldPreparation("late", log)))
        operation.finish()
        #expect(log.events == ["prepare", "withdraw prepare"])
    }
}
