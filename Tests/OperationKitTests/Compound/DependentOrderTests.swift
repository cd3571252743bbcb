import OperationKitTestSupport

/// The order in which children start that wait for the same operation, one at a time.
@Suite("Compound: order after dependencies", .hangGuard) struct DependentOrderTests {
    private final class Plain: Operation, @unchecked Sendable {
        let work: @Sendable () -> Void

        init(_ work: @escaping @Sendable () -> Void) { self.work = work }

        override func main() { work() }
    }

    @Test("Children of another class that wait for the same start in their order, with the higher priority first")
    func plainChildren() async throws {
        for _ in 0..<TestExtent.choose(60, long: 600) {
            let (log, mayEnd) = (EventLog(), Gate())
            let download = BlockOperation { mayEnd.pass() }
            let queue = OperationQueue()
            queue.addOperation(download)
            let steps = (0..<20).map { number in Plain { log.add("\(number)") } }
            for step in steps { step.addDependency(download) }
            steps[19].queuePriority = .high
            let compound = CompoundOperation(operations: steps, maxConcurrentOperationCount: 1)
            queue.addOperation(compound)
            await eventually("it does not run") { compound.isExecuting }
            mayEnd.open()
            try await compound.finished()
            #expect(log.events == ["19"] + (0..<19).map { "\($0)" })
        }
    }
}
