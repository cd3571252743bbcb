import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Sealed mains") struct SealedMainTests {
    @Test("Calling main() by hand starts nothing where start() starts the work") func byHand() throws {
        let make: @Sendable (Int) -> IOOperation<Void, [Int]> = { _ in IOBlockOperation { [1] } }
        let operations: [IOOperation<Void, [Int]>] = [
            RetryOperation(makeOperation: make),
            RepeatOperation(every: .seconds(1), makeOperation: make),
            HedgedOperation(after: .seconds(1), makeOperation: make),
            WorkflowOperation<Void, [Int]>(name: "pages") { _ in [1] },
            IOTaskOperation<Void, [Int]> { [1] },
            IOBlockOperation<Void, [Int]> { [1] },
            [IOBlockOperation<Void, Int> { 1 }].gathered(),
            make(1).recoverRun { _ in IOBlockOperation<Void, [Int]> { [2] } },
            MacroOperation(make(1)),
        ]
        for operation in operations {
            operation.main(input: ())
            #expect(operation.output == nil && !operation.isExecuting && !operation.isFinished, "\(operation)")
        }
        let map = MapOperation<Int, Int> { $0 }
        map.main(input: [1])
        #expect(map.output == nil && !map.isFinished)
        let delay = DelayOperation(for: .seconds(1))
        delay.main()
        #expect(!delay.isExecuting && !delay.isFinished)
    }
}
