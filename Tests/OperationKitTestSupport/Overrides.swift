package import Foundation
package import OperationKit

/// A compound whose methods are closures, which get it as an argument so that they need not hold it.
package final class ScriptedCompound: CompoundOperation, @unchecked Sendable {
    package typealias Preparation = @Sendable (ScriptedCompound) throws -> Void
    package typealias Decision = @Sendable (ScriptedCompound, CompoundOperationError?) throws -> Void

    private let preparation: Preparation
    private let decision: Decision

    /// Creates a compound that is not prepared, and ends with the failures of its children, unless the closures say otherwise.
    package init(
        _ name: String? = nil, operations: [Operation] = [], prepare: @escaping Preparation = { _ in },
        decide: @escaping Decision = { if let error = $1 { throw error } }
    ) {
        (preparation, decision) = (prepare, decide)
        super.init(name: name, operations: operations)
    }

    package override func prepare() throws { try preparation(self) }

    package override func childrenDidFinish(_ error: CompoundOperationError?) throws { try decision(self, error) }
}

/// A stock operation that answers by a closure whether it is ready. The closure gets the answer of Foundation.
package final class AskedOperation: Operation, @unchecked Sendable {
    package typealias Answer = @Sendable (_ operation: AskedOperation, _ isReady: Bool) -> Bool

    private let answer: Answer
    private let work: @Sendable () -> Void

    package init(isReady answer: @escaping Answer, _ work: @escaping @Sendable () -> Void = {}) {
        (self.answer, self.work) = (answer, work)
    }

    package override var isReady: Bool { answer(self, super.isReady) }

    package override func main() { work() }
}

/// An asynchronous operation that answers by a closure whether it is ready. The closure gets the usual answer.
package final class AskedAsyncOperation: ScriptedOperation, @unchecked Sendable {
    package typealias Answer = @Sendable (_ operation: AskedAsyncOperation, _ isReady: Bool) -> Bool

    private let answer: Answer

    package init(isReady answer: @escaping Answer, main: @escaping Script = { $0.finish() }) {
        self.answer = answer
        super.init(main: main)
    }

    package override var isReady: Bool { answer(self, super.isReady) }
}

/// An asynchronous operation that says that it is cancelled, though it is not.
package final class CancelledByItsWord: ScriptedOperation, @unchecked Sendable {
    package override var isCancelled: Bool { true }
}

/// A stock operation that calls a closure when it is asked what it depends on.
package final class ReadOperation: BlockOperation, @unchecked Sendable {
    package let willRead = Shared<@Sendable () -> Void>({})

    package override var dependencies: [Operation] {
        willRead.value()
        return super.dependencies
    }
}

extension OperationQueue {
    /// A suspended queue.
    package static func suspended(_ name: String? = nil) -> OperationQueue {
        let queue = OperationQueue()
        if let name { queue.name = name }
        queue.isSuspended = true
        return queue
    }
}
