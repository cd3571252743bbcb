import OperationKitTestSupport

@testable import OperationKit

#if DEBUG
/// What each level costs where composites are nested deep, in locks taken, so that the counts do not depend on the machine. They do
/// depend on what else in the process has composites that have lost dependencies, as random programs have.
@Suite("Cost of nesting", .hangGuard, .takesTurns) struct NestingCostTests {
    typealias Chain = IOOperation<Int, Int>
    /// Composites inside each other, made before the start or, where a closure makes them, while they run.
    enum Form: CaseIterable, Sendable {
        case macros, maps, recoveries, recoveriesThatRun, recoveriesThatMake, waterfalls
        case compounds, compoundsThatWait, compoundsWhileTheyRun, mixture

        func make(_ depth: Int, around leaf: @escaping @Sendable () -> Chain) -> AsyncOperation {
            switch self {
            case .macros:
                nested(depth, leaf()) { MacroOperation(MacroOperation(Self.step())).then($0).then(Self.step()) }
            case .maps: nested(depth, leaf()) { $0.map { $0 } }
            case .recoveries: nested(depth, leaf()) { $0.recoverRun { error throws -> Chain in throw error } }
            case .recoveriesThatRun: nested(depth, Self.failing()) { $0.recoverRun { _ in Self.failing() } }
            case .recoveriesThatMake: Self.made(depth, leaf) { inner, _ in Self.failing().recoverRun { _ in inner() } }
            case .waterfalls:
                Self.made(depth, leaf) { inner, _ in Waterfall<Int, Int>().thenRun { _ in inner() }.then { $0 } }
            case .mixture:
                Self.made(depth, leaf) { inner, level in
                    let waterfall = Waterfall<Int, Int>().thenRun { _ in inner() }
                    return switch level % 3 {
                    case 0: waterfall.map { $0 }
                    case 1: Self.failing().recoverRun { _ in inner() }
                    default: MacroOperation(Self.step()).then(waterfall)
                    }
                }
            case .compounds:
                (1..<depth).reduce(CompoundOperation(operations: [leaf().with(input: 0)])) { inner, _ in
                    CompoundOperation(operations: [inner])
                }
            case .compoundsThatWait: fromOutside(depth, leaf())
            case .compoundsWhileTheyRun: Growing(depth, leaf)
            }
        }

        private static func step() -> Chain { Step.increment("step") }
        private static func failing() -> Chain { Step.failing().with(input: 0) }

        private func nested(_ depth: Int, _ leaf: Chain, _ around: (Chain) -> Chain) -> Chain {
            (0..<depth).reduce(leaf) { inner, _ in around(inner) }.with(input: 0)
        }

        private static func made(
            _ depth: Int, _ leaf: @escaping @Sendable () -> Chain,
            _ around: @escaping @Sendable (_ inner: @escaping @Sendable () -> Chain, _ level: Int) -> Chain
        ) -> Chain {
            depth == 0
                ? leaf().with(input: 0) : around({ made(depth - 1, leaf, around) }, depth).with(input: 0)
        }

        /// Compounds that wait, each together with its neighbors, to which the next one is added.
        private func fromOutside(_ depth: Int, _ leaf: Chain) -> CompoundOperation {
            let outermost = CompoundOperation()
            var compound = outermost
            expectNoError {
                for _ in 1..<depth {
                    let (inner, last) = (CompoundOperation(), Self.step().with(input: 0))
                    let first = CompoundOperation(operations: [Self.step().with(input: 0)])
                    inner.addDependency(first)
                    last.addDependency(inner)
                    try compound.addOperations([BlockOperation {}, first, inner, last])
                    compound = inner
                }
                try compound.addOperation(leaf.with(input: 0))
            }
            return outermost
        }
    }

    /// A compound that adds the next one when it starts, together with what that waits for.
    private final class Growing: CompoundOperation, @unchecked Sendable {
        private let depth: Int
        private let leaf: @Sendable () -> Chain

        init(_ depth: Int, _ leaf: @escaping @Sendable () -> Chain) {
            (self.depth, self.leaf) = (depth, leaf)
            super.init()
        }

        override func prepare() throws {
            if depth == 1 { return try addOperation(leaf().with(input: 0)) }
            let first = CompoundOperation(operations: [BlockOperation {}])
            let inner = Growing(depth - 1, leaf)
            inner.addDependency(first)
            try addOperations([first, inner, BlockOperation {}])
        }
    }

    /// Expects that twice the depth takes hardly more than twice the locks; if each level asked all those around it, or
    /// inside it, it would be four times as many.
    private func expectLinear(
        _ form: some Sendable, from depth: Int = TestExtent.choose(10, long: 60),
        _ location: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (_ depth: Int, HeldQueue) -> Void
    ) async {
        let counts = Shared<[Int]>([])
        // A body of a composite stays on the thread that starts it only where that belongs to an operation queue.
        let counting = BlockOperation {
            counts.value = [depth, 2 * depth, 4 * depth].map { depth in
                HeldComposites.count { body(depth, $0) }.locks
            }
        }
        try? await OperationQueue().run(counting)
        let locks = counts.value
        #expect(
            2 * (locks[2] - locks[1]) <= 5 * (locks[1] - locks[0]), "\(form): \(locks)", sourceLocation: location)
    }

    enum Life: CaseIterable { case run, cancelledAtWork, cancelledBefore }

    @Test("Each level costs the same to build, run, cancel and free", arguments: Form.allCases, Life.allCases)
    func life(_ form: Form, _ life: Life) async {
        await expectLinear(form) { depth, queue in
            if life == .cancelledBefore { _ = form.make(depth) { Step.increment("leaf") } }
            let operation = form.make(depth) { life == .cancelledAtWork ? Step { _, _ in } : .increment("leaf") }
            if life == .cancelledBefore { operation.cancel() }
            operation.start()
            queue.startAll()
            if life == .cancelledAtWork {
                operation.cancel()
                queue.startAll()
            }
            #expect(operation.isFinished)
            if life == .run { #expect(operation.error == nil || form == .recoveriesThatRun) }
        }
    }

    /// The deepest, because what changes at the bottom fades away within the first few hundred levels.
    @Test(
        "Each level costs the same while the progress of all is observed",
        arguments: TestExtent.choose(
            [Form.macros, .mixture],
            long: [.macros, .maps, .recoveries, .waterfalls, .mixture, .compoundsWhileTheyRun]))
    func progress(_ form: Form) async {
        await expectLinear(form, from: TestExtent.choose(60, long: 300)) { depth, queue in
            let operation = form.make(depth) { Step.increment("leaf") }
            _ = operation.progress
            operation.start()
            queue.startAll()
            #expect(operation.isFinished && operation.progress.fractionCompleted == 1)
        }
    }

    @Test("A child with children costs the same to add, whatever its compound waits for") func wideChildren() async {
        await expectLinear("wide") { count, _ in
            let awaited = (0..<count).map { _ in AsyncOperation() }
            let sync = CompoundOperation()
            for operation in awaited { sync.addDependency(operation) }
            expectNoError {
                for _ in 0..<count {
                    try sync.addOperation(CompoundOperation(operations: (0..<8).map { _ in AsyncOperation() }))
                }
            }
        }
    }

    @Test("What is inside a child is searched once, however many around it wait") func foreignDependencies() async {
        await expectLinear("foreign") { depth, _ in
            let awaited = BlockOperation {}
            let outermost = CompoundOperation()
            var innermost = outermost
            expectNoError {
                for _ in 0..<depth {
                    let inner = CompoundOperation()
                    inner.addDependency(awaited)
                    try innermost.addOperation(inner)
                    innermost = inner
                }
                let child = (0..<depth).reduce(CompoundOperation()) { inner, _ in
                    CompoundOperation(operations: [inner])
                }
                try innermost.addOperation(child)
            }
            withExtendedLifetime(outermost) {}
        }
    }

    @Test("Progress that is read at each level of a macro costs each the same") func progressOfEach() async {
        await expectLinear(Form.macros) { depth, _ in
            let operation = (0..<depth).reduce(Step.increment("leaf") as Chain) { inner, _ in
                _ = inner.progress
                return MacroOperation(inner)
            }
            _ = operation.progress
        }
    }
}
#endif

/// Compounds inside each other, deeper than any stack. What they do is done on a thread whose stack is smaller than that of
/// any system's threads.
@Suite("Compounds nested thousands deep", .hangGuard, .serialized) struct NestingDepthTests {
    private static let depth = TestExtent.choose(1_000, long: 10_000)

    private static func nested(around leaf: Operation) -> CompoundOperation {
        (1..<depth).reduce(CompoundOperation(operations: [leaf], maxConcurrentOperationCount: 1)) { inner, _ in
            CompoundOperation(operations: [inner], maxConcurrentOperationCount: 1)
        }
    }

    private func onSmallStack(_ body: @escaping @Sendable () -> Void) async {
        await onThread(stackSize: 256 << 10, body)
    }

    @Test("They start, report progress at the bottom, and end when the innermost child does") func end() async throws {
        let leaf = ScriptedOperation.idle()
        let outermost = Self.nested(around: leaf)
        await onSmallStack { _ = outermost.progress }
        await outermost.start(until: leaf)
        await onSmallStack {
            leaf.progress.totalUnitCount = 4
            leaf.progress.completedUnitCount = 1
        }
        #expect(outermost.progress.fractionCompleted == 0.25)
        await onSmallStack { leaf.finish(withError: TestError.first) }
        let error = await #expect(throws: CompoundOperationError.self) { try await outermost.finished() }
        #expect(error?.leafErrors.map { $0 as? TestError } == [.first])
        #expect(outermost.progress.fractionCompleted == 1)
    }

    @Test("A cancellation reaches the innermost child before it returns, and all end by it", arguments: [true, false])
    func cancellation(hasStarted: Bool) async throws {
        let begun = Gate()
        let leaf = ScriptedOperation(main: { _ in begun.open() }, didCancel: { $0.finish() })
        let outermost = Self.nested(around: leaf)
        if hasStarted { await outermost.start(until: leaf) }
        await onSmallStack { outermost.cancel() }
        #expect(leaf.isCancelled)
        if !hasStarted { OperationQueue().addOperation(outermost) }
        await #expect(throws: CompoundOperationError.self) { try await outermost.finished() }
        // The thread of `main()`, if that had not returned, has called `didCancel()`.
        #expect(leaf.isFinished && begun.isOpen == hasStarted)
    }

    @Test("They describe themselves, and are freed without a start") func descriptionAndRelease() async throws {
        let tracker = LeakTracker()
        let outermost = Shared<CompoundOperation?>(Self.nested(around: tracker.track(AsyncOperation())))
        await onSmallStack {
            #expect(outermost.value?.debugDescription.isEmpty == false)
            outermost.change { $0 = nil }
        }
        await tracker.expectAllReleased()
    }
}
