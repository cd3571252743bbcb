import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// `OperationQueue.run`: adds an operation, waits for its end, and hands over what came of it.
@Suite("OperationQueue.run", .hangGuard) struct RunTests {
    private final class Measure: IOOperation<String, Int>, @unchecked Sendable {
        override func main(input: String) { finish(with: input.count) }
    }

    @Test("The output is returned")
    func output() async throws {
        let measure = Measure()
        measure.input = "four"
        // The overload for typed operations is chosen: the result is an Int.
        let output: Int = try await OperationQueue().run(measure)
        #expect(output == 4)
    }

    @Test("The overload for typed operations is chosen without help from the context")
    func overload() async throws {
        let queue = OperationQueue()
        let operation = TaskOperation { "text" }
        #expect(Self.typeName(try await queue.run(operation)) == "String")
        #expect(Self.typeName(try await queue.run(TaskOperation { 1 })) == "Int")
        #expect(Self.typeName(try await queue.run { 7 }) == "Int")
        #expect(Self.typeName(try await queue.run(ScriptedOperation())) == "()")
        #expect(Self.typeName(try await queue.run(BlockOperation {})) == "()")
    }

    private static func typeName<Value>(_ value: Value) -> String { "\(Value.self)" }

    @Test("The error is thrown")
    func error() async {
        let queue = OperationQueue()
        await #expect(throws: TestError.first) {
            try await queue.run(ScriptedOperation(main: { $0.finish(withError: TestError.first) }))
        }
        await #expect(throws: TestError.first) { try await queue.run(TaskOperation<Int> { throw TestError.first }) }
        await #expect(throws: TestError.first) { try await queue.run { throw TestError.first } }
        await #expect(throws: TestError.first) {
            try await queue.run(ThrowingBlockOperation { throw TestError.first })
        }
    }

    @Test("An operation that was cancelled before throws the reason")
    func reason() async {
        let operation = ScriptedOperation()
        operation.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await OperationQueue().run(operation) }
    }

    /// Finishes its dependency while a queue asks whether it is ready: after the answer was found, before it is
    /// known.
    private final class AskedTooEarly: Operation, @unchecked Sendable {
        private let dependency: AsyncOperation
        private let isFirst = Shared(true)

        init(_ dependency: AsyncOperation) {
            self.dependency = dependency
            super.init()
            addDependency(dependency)
        }

        override var isReady: Bool {
            let answer = super.isReady
            if dependency.isExecuting, !answer, isFirst.change({ exchange(&$0, with: false) }) { dependency.finish() }
            return answer
        }
    }

    @Test("A dependency may finish while the queue asks whether the operation is ready")
    func aDependencyThatFinishesDuringTheAdditionIsNoticed() async throws {
        let dependency = ScriptedOperation.idle()
        let operation = AskedTooEarly(dependency)
        dependency.start()
        try await OperationQueue().run(operation)
        #expect(operation.isFinished)
    }

    @Test("An operation that was started is rejected by name, and left alone") func started() async {
        let log = EventLog()
        let (finished, typed, plain) = (
            ScriptedOperation("finished"), TaskOperation(name: "typed") { 1 }, BlockOperation {}
        )
        plain.name = "plain"
        let executing = ScriptedOperation.logged(log) { _ in }
        executing.name = "executing"
        for operation in [finished, typed, plain] { await Start.byHand(operation) }
        executing.start()
        let queue = OperationQueue()
        func expectRejection(_ name: String, _ run: () async throws -> Void) async {
            await #expect(throws: OperationQueueError.cannotBeAdded(operation: name)) { try await run() }
        }
        await expectRejection("finished") { try await queue.run(finished) }
        await expectRejection("typed") { _ = try await queue.run(typed) }
        await expectRejection("plain") { try await queue.run(plain) }
        await expectRejection("executing") { try await queue.run(executing) }
        #expect(executing.isExecuting && !executing.isCancelled)
        executing.finish()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }
}
