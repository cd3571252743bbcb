import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Sealed mains", .hangGuard) struct SealedMainTests {
    /// Operations whose work is started by `start()`, none of which has been started.
    private static func operations() throws -> [IOOperation<Void, [Int]>] {
        let source = IOBlockOperation<Void, Int> { 1 }
        let list = IOBlockOperation<Void, [Int]> { [1] }
        return [
            RetryOperation { _ in IOBlockOperation<Void, [Int]> { [1] } },
            RepeatOperation(every: .seconds(1)) { _ in IOBlockOperation<Void, [Int]> { [1] } },
            HedgedOperation(after: .seconds(1)) { _ in IOBlockOperation<Void, [Int]> { [1] } },
            IOTaskOperation<Void, [Int]> { [1] },
            IOBlockOperation<Void, [Int]> { [1] },
            [source].gathered(),
            list.recoverRun { _ in IOBlockOperation<Void, [Int]> { [2] } },
            MacroOperation(IOBlockOperation<Void, [Int]> { [1] }),
        ]
    }

    @Test("Calling main() by hand starts nothing where start() starts the work") func byHand() throws {
        for operation in try Self.operations() {
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
