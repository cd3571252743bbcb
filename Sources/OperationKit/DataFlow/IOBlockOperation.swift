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
/// The closure runs once, with the input, on the thread that starts the operation. It is not called when the operation was
/// cancelled or given an outcome before its start, or has no input. It is released before the operation finishes.
///
/// | | When the operation ends | How the closure sees a cancellation |
/// |---|---|---|
/// | `IOBlockOperation { input in … }` | when it returns the output or throws the error | |
/// | `IOBlockOperation.observing { input, work in … }` | the same | by its ``WorkHandle`` |
/// | `IOBlockOperation.finishing { input, finish in … }` | when `finish(with: output)` or `finish(error)` is called | by its ``FinishHandle`` |
///
/// A cancellation is a request: the operation ends when the work does.
public final class IOBlockOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable
{
    private enum Block {
        case returning(@Sendable (Input) throws -> Output)
        case observing(@Sendable (Input, WorkHandle) throws -> Output)
        case finishing(@Sendable (Input, FinishHandle<Output>) -> Void)
    }

    private var block: Block?

    private init(_ name: String?, _ block: Block) {
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
        self.init(name, .returning(block))
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
        IOBlockOperation(name, .observing(block))
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
        IOBlockOperation(name, .finishing(block))
    }

    /// Does nothing: the closure is run by `start()`.
    public override func main(input: Input) {}

    override func startWork(on input: Input) {
        if let result = startClosure(on: input) { end(with: result) }
    }

    /// - Returns: What the closure returned or threw; `nil` if the work goes on. Nothing but the operation holds the
    ///   closure afterward.
    private func startClosure(on input: Input) -> Result<Output, any Error>? {
        switch lock.withLock({ block }) {
        case .returning(let block): return Result { try block(input) }
        case .observing(let block): return Result { try block(input, WorkHandle(operation: self)) }
        case .finishing(let block): block(input, FinishHandle(of: self) { self.settle(with: $0, onAcceptance: $1) })
        case nil: break
        }
        return nil
    }

    override func releaseWork() {
        // Released after unlocking; its deinitializers may run arbitrary code.
        _ = lock.withLock { block.take() }
    }
}

extension IOOperation {
    /// Ends the operation with the result of its work.
    final func end(with result: Result<Output, any Error>) {
        switch result {
        case .success(let output): finish(with: output)
        case .failure(let error): finish(withError: error)
        }
    }
}
