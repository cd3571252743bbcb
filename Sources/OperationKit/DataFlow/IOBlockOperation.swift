import Foundation

/// A typed operation whose work is a closure, so that a step needs no subclass. An ``IOTaskOperation`` takes an `async` one.
///
/// ```swift
/// let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }
/// let later = IOBlockOperation<String, Int>.finishing(name: "later") { text, finish in
///     DispatchQueue.global().async { finish(with: text.count) }
/// }
/// ```
///
/// The closure runs once, with the input, on the thread that starts the operation, or on another one if a condition or
/// a resource took time. It is not called when the operation was cancelled or given an outcome before its start, or has
/// no input. It is released before the operation finishes, unless it still runs then.
///
/// | | When the operation ends | How the closure sees a cancellation |
/// |---|---|---|
/// | `IOBlockOperation { input in … }` | when it returns the output or throws the error | |
/// | `IOBlockOperation.observing { input, work in … }` | the same | by its ``WorkHandle`` |
/// | `IOBlockOperation.finishing { input, finish in … }` | when `finish(with: output)` or `finish(error)` is called | by its ``FinishHandle`` |
///
/// A cancellation is a request: the operation ends when the work does. Other code that finishes it ends it immediately, also while the
/// closure runs.
public final class IOBlockOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable
{
    /// Returns what the work returned or threw; `nil` if the work goes on.
    private typealias Block = @Sendable (IOBlockOperation, Input) -> Result<Output, any Error>?

    private var block: Block?

    private init(_ name: String?, running block: @escaping Block) {
        self.block = block
        super.init()
        self.name = name
    }

    /// Creates an operation that runs a closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public convenience init(name: String? = nil, _ block: @escaping @Sendable (Input) throws -> Output) {
        self.init(name) { _, input in Result { try block(input) } }
    }

    /// Creates an operation that runs a closure, which can see that the operation is cancelled.
    ///
    /// ```swift
    /// let sum = IOBlockOperation<[Int], Int>.observing(name: "sum") { numbers, work in
    ///     try numbers.reduce(0) { sum, number in
    ///         try work.checkCancellation()
    ///         return sum + number
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    /// - Returns: The operation.
    public static func observing(
        name: String? = nil, _ block: @escaping @Sendable (_ input: Input, _ work: WorkHandle) throws -> Output
    ) -> IOBlockOperation {
        IOBlockOperation(name) { operation, input in
            Result { try block(input, WorkHandle(operation: operation)) }
        }
    }

    /// Creates an operation that runs a closure, and ends when that calls `finish`.
    ///
    /// ```swift
    /// enum Server {
    ///     static func load(_ path: String, done: @escaping @Sendable (Result<Data, any Error>) -> Void) -> Progress {
    ///         Progress(totalUnitCount: 1)   // …
    ///     }
    /// }
    ///
    /// let step = IOBlockOperation<String, Data>.finishing(name: "load") { path, finish in
    ///     let transfer = Server.load(path) { result in
    ///         switch result {
    ///         case .success(let data): finish(with: data)
    ///         case .failure(let error): finish(error)
    ///         }
    ///     }
    ///     finish.onCancel { transfer.cancel() }
    /// }
    /// ```
    ///
    /// It has to call `finish` on every path, from any thread; the first call decides. A `finish` that can never be called,
    /// because the last copy was released, ends the operation with ``LostFinishError``.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: Starts the work.
    /// - Returns: The operation.
    public static func finishing(
        name: String? = nil, _ block: @escaping @Sendable (_ input: Input, _ finish: FinishHandle<Output>) -> Void
    ) -> IOBlockOperation {
        IOBlockOperation(name) { operation, input in
            block(input, FinishHandle(of: operation) { operation.settle(with: $0, onAcceptance: $1) })
            return nil
        }
    }

    /// Does nothing: the closure is run by `start()`.
    public override func main(input: Input) {}

    override func startWork(on input: Input) {
        // Nothing but the operation holds the closure when the work has ended.
        let result = lock.withLock({ block })?(self, input)
        if let result { settle(with: result) {} }
    }

    override func releaseWork() {
        // Released after unlocking; its deinitializers may run arbitrary code.
        _ = lock.withLock { block.take() }
    }
}
