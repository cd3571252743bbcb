import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Parts of macros, waterfalls and the like that are cancelled by themselves while they wait for an operation that is
/// not part of them.
@Suite("Cancellation of a part that waits", .hangGuard) struct LoneCancellationTests {
    /// Never started, so what waits for it waits forever.
    private let never = BlockOperation()

    @Test("A step that is cancelled while it waits ends its macro")
    func aStepOfAMacro() async {
        for cancelled in 0..<2 {
            let steps = [Step.increment("first"), Step.increment("second")]
            steps[cancelled].addDependency(never)
            let macro = chain(of: steps).with(input: 0)
            macro.start()
            steps[cancelled].cancel()
            await #expect(throws: CancellationError.self) { try await macro.value }
            #expect(macro.failedStep?.name == steps[cancelled].name)
            #expect(!macro.isCancelled && steps.allSatisfy(\.isFinished))
        }
    }

    @Test("The source of a transforming operation that is cancelled while it waits ends that operation")
    func theSourceOfATransform() async {
        let source = Step.increment("source")
        source.addDependency(never)
        let transformed = source.map { $0 + 1 }.recover { _ in 0 }.with(input: 0)
        transformed.start()
        source.cancel()
        await #expect(throws: CancellationError.self) { try await transformed.value }
    }

    @Test("The operation of a job that is cancelled while it waits ends its waterfall")
    func theOperationOfAJob() async {
        let made = Step.increment("made").with(input: 0)
        made.addDependency(never)
        let isCalled = Gate()
        let waterfall = Waterfall<Int, Int>()
            .thenRun { _ in made }
            .then { (result: Int) -> Int in
                isCalled.open()
                return result
            }
        waterfall.input = 0
        waterfall.start()
        await eventually("the job was not called") { waterfall.debugDescription.contains("made") }
        made.cancel()
        await #expect(throws: CancellationError.self) { try await waterfall.value }
        #expect(waterfall.failedStep?.name == "made" && !isCalled.isOpen)
    }

    @Test("A throwing block that is cancelled while it waits ends without its dependency")
    func aThrowingBlock() async throws {
        let isCalled = Gate()
        let block = ThrowingBlockOperation(name: "block") { isCalled.open() }
        block.addDependency(never)
        let compound = CompoundOperation(operations: [block])
        compound.start()
        block.cancel()
        try await compound.finished()
        #expect(block.isFinished && block.error is CancellationError && !isCalled.isOpen)
    }
}
