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

    @Test("A plain operation is run and waited for")
    func plainOperation() async throws {
        let log = EventLog()
        try await OperationQueue().run(BlockOperation { log.add("block") })
        #expect(log.events == ["block"])
    }

    @Test("A plain operation that was cancelled throws")
    func cancelledPlainOperation() async {
        let log = EventLog()
        let operation = BlockOperation { log.add("block") }
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await OperationQueue().run(operation) }
        #expect(log.events.isEmpty)
    }

    @Test("An operation that was cancelled before throws the reason")
    func reason() async {
        let operation = ScriptedOperation()
        operation.cancel(withError: TestError.reason)
        await #expect(throws: TestError.reason) { try await OperationQueue().run(operation) }
    }

    @Test("The closure form names its operation")
    func name() async throws {
        let queue = OperationQueue()
        let names = Shared<[String?]>([])
        let (begun, mayEnd) = (Gate(), Gate())
        async let result = queue.run(name: "named") {
            begun.open()
            await mayEnd.opened()
            return 1
        }
        await begun.opened()
        names.value = queue.operations.map(\.name)
        mayEnd.open()
        #expect(try await result == 1)
        #expect(names.value == ["named"])
    }

    @Test("A serial queue runs closures one after the other")
    func serialQueue() async throws {
        let queue = OperationQueue.serial(name: "serial")
        let inside = Shared(0)
        let most = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await queue.run {
                        let now = inside.change {
                            $0 += 1
                            return $0
                        }
                        most.change { $0 = max($0, now) }
                        await Task.yield()
                        inside.change { $0 -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(most.value == 1)
    }

    @Test("A finished operation is rejected by name")
    func finishedOperation() async {
        let (finished, plain) = (ScriptedOperation("finished"), BlockOperation {})
        plain.name = "plain"
        for operation in [finished, plain] { await Start.byHand(operation) }
        let queue = OperationQueue()
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "finished")) {
            try await queue.run(finished)
        }
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "plain")) { try await queue.run(plain) }
        let typed = TaskOperation(name: "typed") { 1 }
        await Start.byHand(typed)
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "typed")) { try await queue.run(typed) }
    }

    @Test("An executing operation is rejected by name")
    func executingOperation() async {
        let operation = ScriptedOperation.idle("executing")
        operation.start()
        await #expect(throws: OperationQueueError.cannotBeAdded(operation: "executing")) {
            try await OperationQueue().run(operation)
        }
        operation.finish()
    }

    @Test("A rejected operation is left alone")
    func rejectedOperation() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log) { _ in }
        operation.start()
        await #expect(throws: OperationQueueError.self) { try await OperationQueue().run(operation) }
        #expect(operation.isExecuting && !operation.isCancelled)
        operation.finish()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
    }

    @Test("Every operation is released after its run")
    func release() async throws {
        let tracker = LeakTracker()
        do {
            let queue = tracker.track(OperationQueue())
            for number in 0..<100 {
                let output: Int = try await queue.run(tracker.track(TaskOperation { number }))
                #expect(output == number)
                try await queue.run(tracker.track(BlockOperation {}))
                try await queue.run(tracker.track(ScriptedOperation()))
            }
        }
        await tracker.expectAllReleased()
    }

    @Test("Many runs at the same time end")
    func manyRuns() async throws {
        let queue = OperationQueue()
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<1_000 { group.addTask { try await queue.run { number } } }
            return try await group.reduce(0, +)
        }
        #expect(sum == 499_500)
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

    @Test("Operations of two queues that wait for each other in turn end")
    func twoQueues() async throws {
        let (one, two) = (OperationQueue.serial(name: "one"), OperationQueue.serial(name: "two"))
        for _ in 0..<500 {
            let (first, second) = (BlockOperation {}, BlockOperation {})
            second.addDependency(first)
            async let a: Void = one.run(first)
            async let b: Void = two.run(second)
            _ = try await (a, b)
        }
    }

    @Test("Many plain operations that run at the same time end")
    func manyPlainOperations() async throws {
        // The end of an operation of another class is noticed by a dependent that is added while it may be finishing.
        let queue = OperationQueue()
        let count = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2_000 {
                group.addTask { try await queue.run(BlockOperation { count.change { $0 += 1 } }) }
            }
            try await group.waitForAll()
        }
        #expect(count.value == 2_000)
    }
}
