#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An outcome that another thread gives after it has seen `isExecuting`, and before `main()` is called.
@Suite("An end between isExecuting and main()", .hangGuard) struct EndBeforeMainTests {
    /// Starts an operation; another thread finishes it once Foundation has been told that it executes.
    private static func start(_ operation: AsyncOperation, finishingWith error: any Error) {
        var isTold = false
        let observer = Told {
            if isTold { return }
            isTold = true
            #expect(operation.isExecuting)
            #expect(answersOnAnotherThread { operation.finish(withError: error) })
        }
        SchedulingProbe.observed(by: observer) { operation.start() }
    }

    private final class Told: SchedulingProbe.Observer {
        private let action: () -> Void

        init(_ action: @escaping () -> Void) { self.action = action }

        func reached(_ place: SchedulingProbe.Place) {
            if case .told = place { action() }
        }
    }

    @Test("main() of an operation that has ended since it became executing is not called")
    func mainIsNotCalled() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        await onThread { Self.start(operation, finishingWith: TestError.first) }
        #expect(log.events == ["asyncCompletionBlock first"])
        #expect(operation.isFinished && !operation.isExecuting)
    }

    @Test("A compound that is finished since it became executing is not prepared, and ends after its children")
    func aCompoundIsNotPrepared() async throws {
        final class Prepared: CompoundOperation, @unchecked Sendable {
            let log = EventLog()
            override func prepare() { log.add("prepare") }
        }
        let log = EventLog()
        let children = (0..<3).map { _ in ScriptedOperation.logged(log) }
        let compound = Prepared(operations: children)
        await onThread { Self.start(compound, finishingWith: TestError.first) }
        await #expect(throws: TestError.first) { try await compound.finished() }
        #expect(children.allSatisfy { $0.isFinished && $0.isCancelled })
        #expect(compound.log.events.isEmpty && log.count(of: "main") == 0)
    }

    @Test("A typed operation that has ended since it became executing takes no input")
    func aTypedOperationTakesNoInput() async {
        let log = EventLog()
        let operation = Step<Int, Int> { _, _ in log.add("main") }.with(input: 1)
        await onThread { Self.start(operation, finishingWith: TestError.first) }
        #expect(text(operation.error) == "first" && log.events.isEmpty)
    }
}
#endif
