import OperationKitTestSupport

@testable import OperationKit

/// Children whose own state makes what they depend on irrelevant.
@Suite("Compound: children that come with a state", .hangGuard) struct CompoundChildStateTests {
    enum Moment: CaseIterable { case initializer, beforeTheStart, whileItRuns }

    enum State: CaseIterable {
        case cancelled, cancelledBlock, cancelledThrowing, cancelledForeign, executing, finished, released

        var kind: ChildKind? {
            switch self {
            case .cancelledBlock: .block
            case .cancelledThrowing: .throwing
            case .cancelledForeign: .foreign
            default: nil
            }
        }
    }

    /// A child that waits for an operation that never ends, in a compound to which it is added at some moment.
    private func compound(with child: Operation, at moment: Moment) throws -> CompoundOperation {
        let hold = ScriptedOperation.idle("hold")
        let compound = CompoundOperation(operations: moment == .initializer ? [child, hold] : [hold])
        if moment == .beforeTheStart { try compound.addOperation(child) }
        compound.start()
        if moment == .whileItRuns { try compound.addOperation(child) }
        hold.finish()
        return compound
    }

    @Test(
        "A child that was cancelled, executes or has ended when it is added does not wait, nor one that depends on nothing now",
        arguments: Moment.allCases, State.allCases)
    func aState(moment: Moment, state: State) async throws {
        let never = ScriptedOperation.idle("never")
        let scripted = ScriptedOperation("child") { if state == .released { $0.finish() } }
        let child = state.kind?.make { Issue.record("It runs.") } ?? scripted
        if state == .cancelled { child.cancel() }
        if state == .executing || state == .finished { child.start() }
        if state == .finished { scripted.finish() }
        child.addDependency(never)
        if state.kind != nil { child.cancel() }
        if state == .released { child.removeDependency(never) }
        let compound = try compound(with: child, at: moment)
        if state == .executing { elsewhere { scripted.finish() } }
        try await compound.finished()
        #expect(child.isFinished)
        never.start()
        never.finish()
    }

    /// Cancels itself when its dependencies are asked for, which is when an addition has seen its state or is about to.
    private final class Hasty: AsyncOperation, @unchecked Sendable {
        let asked = Shared(0)
        let cancelsAt: Int

        init(cancelsAt: Int) {
            self.cancelsAt = cancelsAt
            super.init()
        }

        override var dependencies: [Operation] {
            let count = asked.increment()
            if count == cancelsAt { cancel() }
            return super.dependencies
        }

        override var queuePriority: Operation.QueuePriority {
            get { super.queuePriority }
            set { super.queuePriority = newValue }
        }
    }

    @Test("A child that is cancelled while it is added does not wait", arguments: Moment.allCases, 1...3)
    func cancelledMeanwhile(moment: Moment, cancelsAt: Int) async throws {
        let never = ScriptedOperation.idle("never")
        let child = Hasty(cancelsAt: cancelsAt)
        child.addDependency(never)
        let compound = try compound(with: child, at: moment)
        child.cancel()
        try await compound.finished()
        #expect(child.isFinished)
        never.start()
        never.finish()
    }

    @Test(
        "A child that is given a dependency before its turn waits for it, also if another one is removed",
        arguments: [false, true])
    func dependencyInItsTurn(isFirst: Bool) async throws {
        let (first, second) = (ScriptedOperation.idle("first"), ScriptedOperation.idle("second"))
        let child = ScriptedOperation("child")
        if !isFirst { child.addDependency(second) }
        let compound = CompoundOperation(operations: [first, second, child], maxConcurrentOperationCount: 2)
        compound.start()
        await eventually("do not start") { first.isAtWork && second.isAtWork }
        // The turn of the child comes when the second one ends.
        child.addDependency(first)
        if !isFirst { child.removeDependency(second) }
        second.finish()
        await eventually("does not wait") { compound.debugDescription.contains("“child”: waiting for “first”") }
        if isFirst { child.removeDependency(first) }
        #expect(!child.isExecuting)
        first.finish()
        try await compound.finished()
        #expect(child.isFinished && child.error == nil)
    }

    @Test("A child that waits for a dependency that came late takes no place") func lateDependency() async throws {
        let first = ScriptedOperation.idle("first")
        let (child, last) = (ScriptedOperation("child"), ScriptedOperation("last"))
        let compound = CompoundOperation(operations: [first, child, last], maxConcurrentOperationCount: 1)
        compound.start()
        await eventually("does not start") { first.isAtWork }
        child.addDependency(last)
        first.finish()
        try await compound.finished()
        #expect(child.isFinished && child.error == nil && last.isFinished)
    }
}
