public import OperationKit

package enum TestError: Error, Equatable {
    case first, second, reason
    case numbered(Int)
}

/// An asynchronous operation made of closures, which get it as an argument so that they need not hold it. Open, because
/// tests of other targets subclass it.
open class ScriptedOperation: AsyncOperation, @unchecked Sendable {
    /// What the operation does; it is handed the operation.
    public typealias Script = @Sendable (ScriptedOperation) -> Void

    private let script: Script
    private let hook: Script

    /// Creates an operation from its work, which has to finish the operation unless the test does, and from what stops
    /// the work.
    package init(
        _ name: String? = nil, main: @escaping Script = { $0.finish() }, didCancel: @escaping Script = { _ in }
    ) {
        script = main
        hook = didCancel
        super.init()
        self.name = name
    }

    open override func main() { script(self) }

    open override func didCancel() { hook(self) }
}

extension ScriptedOperation {
    /// Does nothing by itself: the test finishes it.
    package static func idle(_ name: String? = nil) -> ScriptedOperation {
        ScriptedOperation(name, main: { _ in })
    }

    /// Works until it is cancelled, and then ends with a `CancellationError`.
    package static func stoppable(_ name: String? = nil, main: @escaping Script = { _ in }) -> ScriptedOperation {
        ScriptedOperation(name, main: main, didCancel: { $0.finish(withError: CancellationError()) })
    }

    /// Writes down its name when its work begins, which then ends.
    package static func named(
        _ name: String, in log: EventLog, requiring resources: [OperationResource] = []
    ) -> ScriptedOperation {
        let operation = ScriptedOperation(name) { operation in
            log.add(name)
            operation.finish()
        }
        for resource in resources { operation.require(resource) }
        return operation
    }

    /// Writes down what is called on it.
    package static func logged(_ log: EventLog, main: @escaping Script = { $0.finish() }) -> ScriptedOperation {
        let operation = ScriptedOperation(
            main: {
                log.add("main")
                main($0)
            },
            didCancel: { _ in log.add("didCancel") })
        operation.asyncCompletionBlock = { log.add("asyncCompletionBlock \(text($0))") }
        return operation
    }
}

/// An outcome as a short text for logs.
package func text(_ error: (any Error)?) -> String {
    switch error {
    case nil: "success"
    case let error as TestError: "\(error)"
    case is CancellationError: "cancelled"
    case let error?: String(describing: error)
    }
}
