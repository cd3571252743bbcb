#if os(Linux) || os(macOS)
import OperationKitTestSupport
import Testing

/// What compiles and what does not.
@Suite("Conformances to collection operations", .hangGuard) struct ConformanceTests {
    private static func messages(_ code: String) async throws -> String? {
        try await TypeChecker().check([CodeBlock(file: "Conformance.md", line: 1, code: [code])])
    }

    @Test(
        "Changing the strategy is changing one word",
        arguments: ["ParallelItemOperation", "SequentialItemOperation"])
    func oneWord(word: String) async throws {
        let code = """
            final class Sync: \(word) {
                func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
            }
            func caller() async {
                let sync = Sync()
                let errors = await sync.performOperation(on: [1, 2])
                print(sync.failures(in: [1, 2], errors: errors).map(\\.item) as [Int])
                sync.performOperation(on: [1, 2]) { print($0) }
                OperationQueue().addOperation(sync.makeOperation(on: [1, 2]))
            }
            """
        #expect(try await Self.messages(code) == nil)
    }

    /// Neither method: this must not become an endless recursion at run time.
    @Test("A type with neither method does not compile")
    func neitherMethod() async throws {
        let items = try await Self.messages("final class Neither: ParallelItemOperation, AsyncItemOperation {}")
        #expect(items?.contains("does not conform") == true)
        let batches = try await Self.messages(
            "final class Neither: ParallelBatchOperation, AsyncBatchOperation { let batchSize = 1 }")
        #expect(batches?.contains("does not conform") == true)
    }

    /// A class that is safe only in sequence would race after the change of one word. `Sendable` tells.
    @Test("A `Sendable` class with unguarded variables does not compile")
    func unguardedVariables() async throws {
        let code = """
            final class Unsafe: SequentialItemOperation, Sendable {
                var count = 0
                func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { count += item }
            }
            """
        #expect(try await Self.messages(code)?.contains("mutable") == true)
    }
}
#endif
