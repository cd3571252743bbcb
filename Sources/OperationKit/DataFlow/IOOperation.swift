import Foundation

/// An asynchronous operation with a typed input and a typed output.
///
/// ```swift
/// final class Measure: IOOperation<String, Int>, @unchecked Sendable {
///     override func main(input: String) { finish(with: input.count) }
/// }
///
/// let measure = Measure()
/// measure.input = "four"
/// measure.start()
/// assert(measure.output == 4)
/// ```
///
/// Everything that ``AsyncOperation`` says of the life cycle holds here. What is added:
///
/// 1. Override ``main(input:)`` instead of `main()`, which is sealed. A missing input ends the operation with
///    ``IOOperationError/missingInput(operation:)`` instead of calling it. `Void` needs no input.
/// 2. Call ``finish(with:)`` for success. `finish(withError: nil)` would be a success without an output, and ends the
///    operation with ``IOOperationError/missingOutput(operation:)``; where the output is `Void` it is a success.
open class IOOperation<Input: Sendable, Output: Sendable>: AsyncOperation, @unchecked Sendable {
    private var storedInput: Input?
    private var storedOutput: Output?

    /// Creates an operation without an input.
    public override init() {
        super.init()
    }

    override init(ending: Lifecycle.Ending) {
        super.init(ending: ending)
    }

    /// What the operation works on. Set it before the start; ``main(input:)`` gets the value it has then.
    public final var input: Input? {
        get { lock.withLock { storedInput } }
        set {
            var previous = newValue
            lock.withLock { swap(&previous, &storedInput) }
        }
    }

    /// What the operation produced: `nil` until it has finished with success. Can be read from any thread, from
    /// `asyncCompletionBlock` on.
    public final var output: Output? {
        lock.withLock {
            guard case .success = lifecycle.outcome else { return nil }
            return storedOutput ?? () as? Output
        }
    }

    /// The output or the error, once the outcome stands; `nil` before. Can be read from any thread, from
    /// `asyncCompletionBlock` on.
    public final var result: Result<Output, any Error>? {
        lock.withLock {
            switch lifecycle.outcome {
            case .success: (storedOutput ?? () as? Output).map { .success($0) }
            case .failure(let error): .failure(error)
            case nil: nil
            }
        }
    }

    /// Suspends until the operation is finished, and returns its output or throws its error.
    ///
    /// What ``AsyncOperation/finished()`` says of waiting holds here: any number of tasks, at any time, and cancelling
    /// the waiting task leaves the operation alone.
    public final var value: Output {
        get async throws {
            try await waitForFinish()
            guard let result else { preconditionFailure("OperationKit: \(displayName) finished without a result") }
            return try result.get()
        }
    }

    /// Starts the work on an input. Not overridden, the operation finishes without an output.
    ///
    /// Called under the conditions of ``AsyncOperation/main()``.
    open func main(input: Input) {
        finish()
    }

    /// Hands the input to ``main(input:)``.
    public final override func main() {
        if let input = input ?? (Input.self == Void.self ? () as? Input : nil) {
            main(input: input)
        } else {
            finish(withError: IOOperationError.missingInput(operation: displayName))
        }
    }

    /// Ends the operation with success and this output. The first call of this or `finish(withError:)` decides the
    /// outcome.
    ///
    /// - Returns: Whether this call decided the outcome.
    @discardableResult
    public final func finish(with output: Output) -> Bool {
        finish(with: .success(())) { storedOutput = output }
    }

    override func checked(_ outcome: Lifecycle.Outcome) -> Lifecycle.Outcome {
        guard case .success = outcome, Output.self != Void.self else { return outcome }
        return .failure(IOOperationError.missingOutput(operation: displayName))
    }
}
