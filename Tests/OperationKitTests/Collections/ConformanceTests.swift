import OperationKitTestSupport

@testable import OperationKit

#if os(Linux) || os(macOS)
@Suite("Conformances to collection operations", .hangGuard) struct ConformanceTests {
    private static func messages(_ code: String) async throws -> String? {
        try await TypeChecker().check([CodeBlock(file: "Conformance.md", line: 1, code: [code])])
    }

    @Test(
        "The strategy changes with one word, and a class need not be `Sendable`",
        arguments: ["ParallelItemOperation", "SequentialItemOperation"])
    func oneWord(word: String) async throws {
        let code = """
            final class Sync: \(word) {
                var seen: [Int] = []
                func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
                    seen.append(item)
                    completion(nil)
                }
            }
            func caller() async {
                let sync = Sync()
                let errors = await sync.performOperation(on: [1, 2])
                print(sync.failures(in: [1, 2], errors: errors).map(\\.item) as [Int])
                sync.performOperation(on: [1, 2]) { print($0) }
                _ = try? await sync.performOperation(onEach: 1...2)
                OperationQueue().addOperation(sync.makeOperation(on: [1, 2]))
            }
            """
        #expect(try await Self.messages(code) == nil)
    }

    private static let wrong = [
        // This must not become an endless recursion at run time.
        ("final class Neither: ParallelItemOperation, AsyncItemOperation {}", "does not conform"),
        ("final class Neither: ParallelBatchOperation, AsyncBatchOperation { let batchSize = 1 }", "does not conform"),
        // A class that is safe only in sequence would race after the change of one word. `Sendable` tells.
        (
            """
            final class Unsafe: SequentialItemOperation, Sendable {
                var count = 0
                func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { count += item }
            }
            """, "mutable"
        ),
    ]

    @Test("A type with neither method, or with unguarded variables, does not compile", arguments: wrong)
    func wrongTypes(code: String, problem: String) async throws {
        #expect(try await Self.messages(code)?.contains(problem) == true)
    }
}
#endif

@Suite("Items, batches and children of collection operations", .hangGuard) struct CollectionChildrenTests {
    /// One of the methods would never be called.
    private final class Both: SequentialItemOperation, SequentialBatchOperation, Sendable {
        let batchSize = 2
        let noun = "item"
        let log = EventLog()

        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
            log.add("item \(item)")
            completion(nil)
        }

        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) {
            log.add("batch \(batch)")
            completion(nil)
        }
    }

    @Test("A class that works by items and by batches is an error that names it, and nothing is performed")
    func itemsAndBatches() async throws {
        let both = Both()
        let errors = await both.performOperation(on: [1, 2, 3])
        #expect(errors.map { $0 as? CoordinationError } == [.itemsAndBatches(type: "Both")])
        await #expect(throws: CoordinationError.itemsAndBatches(type: "Both")) {
            try await both.performOperation(onEach: 1...3)
        }
        let run = both.makeOperation(on: [1, 2, 3])
        await #expect(throws: (any Error).self) { try await OperationQueue().run(run) }
        #expect(both.log.events.isEmpty)
    }

    private final class Items: ParallelItemOperation {
        func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
    }

    private final class Batches: ParallelBatchOperation {
        let batchSize = 2
        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) { completion(nil) }
    }

    @Test("Parallel types have as many items or batches in flight as there are processors") func limits() {
        let count = ProcessInfo.processInfo.activeProcessorCount
        #expect(Items().maxConcurrentOperationCount == count && Batches().maxConcurrentOperationCount == count)
    }

    @Test("A run over a collection has no operations as its children, before, during and after it")
    func noOperations() async throws {
        let run = Strategy.parallelItems.make { _, completion in completion(nil) }.makeOperation(on: [1, 2, 3])
        let child = AsyncBlockOperation { $0() }
        func expectNone() throws {
            let children = try #require(run.children)
            children.childWasCancelled(child)
            #expect(children.operation === run)
            #expect(children.operations(atMost: 10)?.isEmpty == true)
            #expect(children.snapshot(atMost: 10) == nil && children.childProgressed(child, to: 1) == nil)
            #expect(children.dependencies(of: run, recording: true) == nil)
            #expect(children.weightedUnits == nil && children.progressDescription == nil)
        }
        try expectNone()
        run.start()
        try await run.finished()
        try expectNone()
        #expect(!child.isCancelled)
    }
}
