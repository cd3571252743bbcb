import Foundation

/// A typed operation whose work is a closure, so that a step needs no subclass. An ``IOTaskOperation`` takes an `async` one.
///
/// ```swift
/// let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }
/// ```
///
/// The closure runs once, with the input. What it returns is the output, what it throws is the error. It is not called
/// when the operation was cancelled or given an outcome before its start, or has no input. It is released before the
/// operation finishes.
///
/// It runs on the thread that starts the operation, and is not disturbed by a cancellation.
public final class IOBlockOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable
{
    private var block: (@Sendable (Input) throws -> Output)?

    /// Creates an operation that runs a closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping @Sendable (Input) throws -> Output) {
        self.block = block
        super.init()
        self.name = name
    }

    /// Does nothing: the closure is run by `start()`.
    public override func main(input: Input) {}

    override func startWork(on input: Input) {
        if let result = resultOfBlock(input) { end(with: result) }
    }

    /// What the closure returns or throws. Nothing but the operation holds it afterward.
    private func resultOfBlock(_ input: Input) -> Result<Output, any Error>? {
        guard let block = lock.withLock({ self.block }) else { return nil }
        return Result { try block(input) }
    }

    override func releaseWork() {
        var discarded: (@Sendable (Input) throws -> Output)?
        lock.withLock { swap(&discarded, &block) }
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
