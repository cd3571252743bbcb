import Dispatch
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Coordination: defaults", .hangGuard) struct CoordinationDefaultTests {
    @Test("Every quality of service has its class in libdispatch")
    func qualityOfService() {
        let classes: [(QualityOfService, DispatchQoS)] = [
            (.userInteractive, .userInteractive), (.userInitiated, .userInitiated), (.utility, .utility),
            (.background, .background), (.default, .unspecified),
        ]
        for (quality, expected) in classes { #expect(DispatchQoS(quality) == expected) }
    }

    #if DEBUG
    @Test("A thread that has found an older count of items does not report it after a newer one")
    func theNewestCountIsReportedLast() async {
        for place in 0..<Interruption.bound {
            let log = WorkLog()
            let run = ParallelItems(3, 1, .continueAll) { _, completion in log.keep(completion) }
                .makeOperation(on: [1, 2, 3])
            let progress = run.progress
            run.start()
            await eventually("not all items have begun") { log.keptCount == 3 }
            let completions = log.takeKept()
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    if !answersOnAnotherThread({ completions[1](nil) }) { Issue.record("place \(place) hangs") }
                }
                SchedulingProbe.observed(by: interruption) { completions[0](nil) }
                return interruption.hasRun
            }
            #expect(progress.completedUnitCount == (isReached ? 2 : 1) && progress.totalUnitCount == 3)
            for completion in completions { completion(nil) }
            try? await run.finished()
            if !isReached { return }
        }
    }
    #endif

    @Test("Options that cancel the run are read to the end")
    func optionsThatCancel() async {
        let run = Canceller().makeOperation(on: [1])
        run.start()
        #expect(run.isFinished && run.isCancelled)
        #expect(run.errors.map { $0 as? CoordinationError } == [.invalidBatchSize(type: "Canceller", batchSize: 0)])
    }

    /// Cancels its run while that asks for the size of batches, which is wrong as well.
    private final class Canceller: SequentialBatchOperation, @unchecked Sendable {
        weak var run: CollectionRun<Int>?

        var batchSize: Int {
            run?.cancel()
            return 0
        }

        func makeOperation(on collection: [Int]) -> CollectionRun<Int> {
            let run = makeOperation()
            run.input = collection
            self.run = run
            return run
        }

        func performOperation(onBatch batch: [Int], completion: @escaping BatchCompletion) { completion(nil) }
    }
}
