import OperationKitTestSupport

/// `OperationQueue.run`: adds an operation, waits for its end, and hands over what came of it.
@Suite("OperationQueue.run", .hangGuard) struct RunTests {
    private final class Measure: IOOperation<String, Int>, @unchecked Sendable {
        override func main(input: String) { finish(with: input.count) }
    }

    @Test("The output is returned, by the overload for typed operations, without help from the context")
    func output() async throws {
        let queue = OperationQueue()
        #expect(try await queue.run(Measure().with(input: "four")) == 4)
        #expect(Self.typeName(try await queue.run(TaskOperation { "text" })) == "String")
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

    @Test("An operation that was started, or is on the queue, is rejected by name and left alone, also with others")
    func started() async throws {
        let log = EventLog()
        let queue = OperationQueue()
        let (finished, typed, plain) = (
            ScriptedOperation("finished"), TaskOperation(name: "typed") { 1 }, BlockOperation {}
        )
        plain.name = "plain"
        let (executing, present) = (ScriptedOperation.logged(log) { _ in }, ScriptedOperation.idle("present"))
        executing.name = "executing"
        for operation in [finished, typed, plain] { await Start.byHand(operation) }
        executing.start()
        queue.addOperation(present)
        let fresh = ScriptedOperation("fresh")
        for operation in [finished, typed, plain, executing, present] {
            let error = OperationQueueError.cannotBeAdded(operation: operation.name ?? "")
            if operation !== present { await #expect(throws: error) { try await queue.run(operation) } }
            await #expect(throws: error) { try await queue.run([fresh, operation]) }
        }
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "typed")) {
            _ = try await queue.run(typed)
        }
        await #expect(throws: OperationQueueError.givenTwice(operation: "fresh")) {
            try await queue.run([fresh, fresh])
        }
        #expect(queue.operations == [present] && executing.isExecuting && !executing.isCancelled)
        executing.finish()
        present.finish()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        try await queue.run([fresh])
        #expect(fresh.isFinished && !fresh.isCancelled)
    }
}
