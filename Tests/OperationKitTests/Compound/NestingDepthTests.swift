import OperationKitTestSupport

/// Compounds inside each other, deeper than any stack. What they do is done on a thread whose stack is smaller than that of
/// any system's threads.
@Suite("Compounds nested thousands deep", .hangGuard, .serialized) struct NestingDepthTests {
    private static let depth = TestExtent.choose(3_000, long: 10_000)

    /// A compound with a leaf at the bottom of all that is inside of it.
    private static func nested(around leaf: Operation) -> CompoundOperation {
        (1..<depth).reduce(CompoundOperation(operations: [leaf])) { inner, _ in CompoundOperation(operations: [inner]) }
    }

    private func onSmallStack(_ body: @escaping @Sendable () -> Void) async {
        await onThread(stackSize: 256 << 10, body)
    }

    @Test("They start, report the progress at the bottom to the top, and end when the innermost child does")
    func end() async throws {
        let begun = Gate()
        let leaf = ScriptedOperation(main: { _ in begun.open() })
        let outermost = Self.nested(around: leaf)
        await onSmallStack { _ = outermost.progress }
        OperationQueue().addOperation(outermost)
        await begun.opened()
        await onSmallStack {
            leaf.progress.totalUnitCount = 4
            leaf.progress.completedUnitCount = 1
        }
        #expect(outermost.progress.fractionCompleted == 0.25)
        await onSmallStack { leaf.finish(withError: TestError.first) }
        await #expect(throws: CompoundOperationError.self) { try await outermost.finished() }
        #expect((outermost.error as? CompoundOperationError)?.leafErrors.first as? TestError == .first)
        #expect(outermost.progress.fractionCompleted == 1)
    }

    @Test("A cancellation reaches the innermost child before it returns, and all of them end by it")
    func cancellation() async throws {
        let begun = Gate()
        let leaf = ScriptedOperation(main: { _ in begun.open() }, didCancel: { $0.finish() })
        let outermost = Self.nested(around: leaf)
        OperationQueue().addOperation(outermost)
        await begun.opened()
        await onSmallStack { outermost.cancel() }
        #expect(leaf.isCancelled)
        await #expect(throws: CompoundOperationError.self) { try await outermost.finished() }
        // The thread of `main()`, if that had not returned, has called `didCancel()`.
        #expect(leaf.isFinished)
    }

    @Test("Cancelled before the start, they end without running")
    func cancelledBeforeTheStart() async throws {
        let leaf = ScriptedOperation(main: { _ in Issue.record("It ran.") })
        let outermost = Self.nested(around: leaf)
        await onSmallStack { outermost.cancel() }
        #expect(leaf.isCancelled)
        await #expect(throws: CompoundOperationError.self) { try await OperationQueue().run(outermost) }
        #expect(leaf.isFinished)
    }

    @Test("They describe themselves, and are freed without having been started")
    func descriptionAndRelease() async throws {
        let tracker = LeakTracker()
        let outermost = Shared<CompoundOperation?>(Self.nested(around: tracker.track(AsyncOperation())))
        await onSmallStack {
            #expect(outermost.value?.debugDescription.isEmpty == false)
            outermost.change { $0 = nil }
        }
        await tracker.expectAllReleased()
    }
}
