import OperationKitTestSupport

/// Nothing is called under the lock. While a callback runs, another thread takes the lock and answers.
@Suite("Nothing is called under the lock", .hangGuard) struct LockFreedomTests {
    /// Reads everything that takes the lock of the operation.
    @discardableResult
    private static func isFree(_ operation: AsyncOperation) -> Bool {
        answersOnAnotherThread {
            _ = (operation.isFinished, operation.isExecuting, operation.error)
            _ = (operation.asyncCompletionBlock, operation.completionBlock)
            operation.asyncCompletionBlock = operation.asyncCompletionBlock
        }
    }

    @Test("The lock is free in `main()`, `asyncCompletionBlock` and `completionBlock`", arguments: Start.allCases)
    func inMainAndBlocks(start: Start) async {
        let log = EventLog()
        let called = Gate()
        let operation = ScriptedOperation(main: {
            log.add("main \(Self.isFree($0))")
            $0.finish()
        })
        operation.asyncCompletionBlock = { [unowned operation] _ in
            log.add("asyncCompletionBlock \(Self.isFree(operation))")
        }
        operation.completionBlock = {
            log.add("completionBlock \(Self.isFree(operation))")
            called.open()
        }
        await start(operation)
        await called.opened()
        #expect(log.events == ["main true", "asyncCompletionBlock true", "completionBlock true"])
    }

    @Test(
        "The lock is free while a block or an input is released that was replaced, removed or set after the end",
        arguments: [true, false])
    func formerValues(isReplaced: Bool) async {
        let log = EventLog()
        let (operation, ended) = (IOOperation<Released, Int>(), ScriptedOperation())
        await onThread {
            let first = Released { [unowned operation] in log.add("first \(Self.isFree(operation))") }
            operation.asyncCompletionBlock = { _ in first.use() }
            let second = Released { [unowned operation] in log.add("second \(Self.isFree(operation))") }
            operation.completionBlock = { second.use() }
            operation.input = Released { [unowned operation] in log.add("third \(Self.isFree(operation))") }
        }
        await onThread {
            let asyncCompletionBlock: AsyncOperation.AsyncCompletionBlock = { _ in log.add("new") }
            let completionBlock: @Sendable () -> Void = { log.add("new") }
            operation.asyncCompletionBlock = isReplaced ? asyncCompletionBlock : nil
            operation.completionBlock = isReplaced ? completionBlock : nil
            operation.input = isReplaced ? Released {} : nil
            ended.start()
            ended.asyncCompletionBlock = Self.block { [unowned ended] in log.add("last \(Self.isFree(ended))") }
        }
        #expect(log.events == ["first true", "second true", "third true", "last true"])
    }

    private static func block(onRelease body: @escaping @Sendable () -> Void) -> AsyncOperation.AsyncCompletionBlock {
        let released = Released(body)
        return { _ in released.use() }
    }

    enum Work: CaseIterable {
        case asynchronous, synchronous, job

        func make(onRelease body: @escaping @Sendable () -> Void) -> AsyncOperation {
            let released = Released(body)
            switch self {
            case .asynchronous:
                return AsyncBlockOperation { finish in
                    released.use()
                    finish(nil)
                }
            case .synchronous: return ThrowingBlockOperation { released.use() }
            case .job: return Waterfall<Void, Void>().then { released.use() }
            }
        }
    }

    // In a release build, the optimizer could release before the end of the lock what is dropped after it.
    @Test("The lock is free while the work is released, also that which was not done", arguments: Work.allCases, 0..<3)
    func releasedWork(work: Work, index: Int) async {
        let log = EventLog()
        let owner = Shared<AsyncOperation?>(nil)
        let operation = work.make {
            owner.value.map { operation in
                let answers = answersOnAnotherThread { _ = operation.debugDescription }
                log.add("released \(answers && Self.isFree(operation))")
            }
        }
        owner.value = operation
        await onThread {
            if index == 1 { operation.cancel() }
            if index == 2 { operation.finish() }
            operation.start()
            operation.waitUntilFinished()
        }
        await eventually("it is not released") { !log.events.isEmpty }
        #expect(log.events == ["released true"])
        owner.value = nil
    }

    /// A reason for a cancellation that asks about its operation whether it is one.
    private final class AskingReason: CancellableError, @unchecked Sendable {
        let answers = Shared<[Bool]>([])
        weak var operation: AsyncOperation?

        var isCancelled: Bool {
            if let operation { answers.change { [isFree = LockFreedomTests.isFree(operation)] in $0.append(isFree) } }
            return false
        }
    }

    @Test("The lock is free while the reason of a cancellation is asked whether it is one", arguments: 0..<3)
    func reason(kind: Int) async throws {
        let failing = ThrowingBlockOperation { throw TestError.first }
        failing.start()
        let skipped = TaskOperation { 1 }
        skipped.requireSuccess(of: failing)
        let rest = IOBlockOperation<Void, Int>.finishing { _, finish in
            finish.onCancel { finish(CancellationError()) }
        }
        let reason = AskingReason()
        let composite: AsyncOperation
        switch kind {
        case 0:
            composite = ScriptedCompound(
                operations: [skipped],
                decide: { compound, error in
                    compound.cancel(withError: reason)
                    if let error { throw error }
                })
        case 1: composite = [skipped, rest].gathered()
        default:
            let workflow = WorkflowOperation<Void, Int> { _ in try await rest.value }
            for child in [skipped, rest] { try workflow.addOperation(child) }
            composite = workflow
        }
        reason.operation = composite
        composite.start()
        try? await skipped.finished()
        composite.cancel(withError: reason)
        try? await composite.finished()
        let answers = reason.answers.value
        #expect(!answers.isEmpty && answers.allSatisfy { $0 })
    }
}
