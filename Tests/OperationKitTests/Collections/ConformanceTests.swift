#if os(Linux) || os(macOS)
import OperationKitTestSupport
import Testing

/// What compiles and what does not.
@Suite("Conformances to collection operations", .mayNotHang) struct ConformanceTests {
    private static func messages(_ code: String) async throws -> String? {
        try await TypeChecker().check([CodeBlock(file: "Conformance.md", line: 1, code: [code])])
    }

    @Test(arguments: ["ParallelItemOperation", "SequentialItemOperation"])
    func changingTheStrategyIsChangingOneWord(word: String) async throws {
        let code = """
            final class Sync: \(word) {
                func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
            }
            func caller() async {
                let sync = Sync()
                let errors = await sync.performOperation(on: [1, 2])
                print(sync.failures(in: [1, 2], errors: errors).map(\\.item) as [Int])
                sync.performOperation(on: [1, 2]) { print($0) }
                OperationQueue().addOperation(sync.operation(on: [1, 2]))
            }
            """
        #expect(try await Self.messages(code) == nil)
    }

    /// Neither method: this must not become an endless recursion at run time.
    @Test func aTypeWithNeitherMethodDoesNotCompile() async throws {
        let items = try await Self.messages("final class Neither: ParallelItemOperation, AsyncItemOperation {}")
        #expect(items?.contains("does not conform") == true)
        let batches = try await Self.messages(
            "final class Neither: ParallelBatchOperation, AsyncBatchOperation { let batchSize = 1 }")
        #expect(batches?.contains("does not conform") == true)
    }

    /// A class that is safe only in sequence would race after the change of one word. `Sendable` tells.
    @Test func aSendableClassWithUnguardedVariablesDoesNotCompile() async throws {
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
