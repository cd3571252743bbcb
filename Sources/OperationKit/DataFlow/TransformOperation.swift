import Foundation

extension IOOperation {
    /// Returns an operation that runs this one, and makes its output from this one's output.
    ///
    /// ```swift
    /// let load = IOBlockOperation<String, [Int]>(name: "load") { $0.utf8.map(Int.init) }
    /// let sum = load.map { $0.reduce(0, +) }
    /// ```
    ///
    /// Start the new operation instead of this one; it may be a step of a macro. It gets the input, and begins with the one
    /// that this operation has now. It ends with
    /// ``ChainError/alreadyUsed(operation:chain:)`` if this operation is part of another one already. Cancelling the
    /// new operation cancels this one. If this one fails, the new one ends with the same error.
    ///
    /// Where the compiler gives up on a long chain, give it the type of each new output: `map(to: Int.self) { … }`.
    ///
    /// - Parameters:
    ///   - result: The type of the new output, if it is to be given.
    ///   - transform: Makes the new output. Called once if this operation succeeds, on the thread that ended it; what it
    ///     throws is the error. Released at the end, and this operation with it.
    /// - Returns: The new operation.
    public final func map<NewOutput: Sendable>(
        to result: NewOutput.Type = NewOutput.self, _ transform: @escaping @Sendable (Output) throws -> NewOutput
    ) -> IOOperation<Input, NewOutput> {
        TransformOperation(self) { result in try transform(result.get()) }
    }

    /// Returns an operation that runs this one, and ends with another error in place of this one's.
    ///
    /// Start the new operation instead of this one. It includes this one as that of ``map(to:_:)`` does.
    ///
    /// - Parameter transform: Makes the new error. Called once if this operation fails, on the thread that ended it,
    ///   also if the error is the reason of ``AsyncOperation/cancel(withError:)``; not called for an error whose
    ///   `isCancellation` is true. Released at the end.
    /// - Returns: The new operation.
    public final func mapError(
        _ transform: @escaping @Sendable (any Error) -> any Error
    ) -> IOOperation<Input, Output> {
        recover { error in throw transform(error) }
    }

    /// Returns an operation that runs this one, and replaces its failure by a value.
    ///
    /// ```swift
    /// let settings = IOBlockOperation<String, Data>(name: "settings") { path in
    ///     try Data(contentsOf: URL(fileURLWithPath: path))
    /// }
    /// let withDefaults = settings.recover { _ in Data("{}".utf8) }
    /// ```
    ///
    /// Start the new operation instead of this one. It includes this one as that of ``map(to:_:)`` does.
    ///
    /// - Parameter recovery: Makes an output from the error, or throws. Called once if this operation fails, on the
    ///   thread that ended it, also if the error is the reason of ``AsyncOperation/cancel(withError:)``; not called for an
    ///   error whose `isCancellation` is true, because that is no failure. Released at the end.
    /// - Returns: The new operation.
    public final func recover(
        _ recovery: @escaping @Sendable (any Error) throws -> Output
    ) -> IOOperation<Input, Output> {
        TransformOperation(self) { result in
            do {
                return try result.get()
            } catch {
                if error.isCancellation { throw error }
                return try recovery(error)
            }
        }
    }
}

/// Runs one operation, and makes its own result from that one's.
private final class TransformOperation<Input: Sendable, Middle: Sendable, Output: Sendable>:
    DerivedOperation<Input, Middle, Output>, @unchecked Sendable
{
    typealias Transform = @Sendable (Result<Middle, any Error>) throws -> Output

    private var transform: Transform?

    init(_ source: IOOperation<Input, Middle>, _ transform: @escaping Transform) {
        self.transform = transform
        super.init(source, weight: 1)
    }

    override func takeResult() -> Result<Output, any Error> {
        // Release both before the end, and after unlocking; what they hold may run arbitrary code when it is freed.
        let (source, transform, maySucceed) = withState { state in
            (self.source.take(), self.transform.take(), state.lifecycle.reachedMain)
        }
        let result = Result {
            // Otherwise the closure is not called, even if the source has succeeded.
            guard maySucceed, let transform, let result = source?.result else { throw CancellationError() }
            return try transform(result)
        }
        return result.mapError { source?.passingOnCause(in: $0) ?? $0 }
    }
}

/// An operation that was made from another one, its *source*, and runs that as its first step.
///
/// It takes over the name and the input of the source, and without a name it is called by the class of that. Subclasses
/// override ``takeResult()``.
class DerivedOperation<Input: Sendable, Middle: Sendable, Output: Sendable>: IOOperation<Input, Output>,
    @unchecked Sendable
{
    /// Set until the end, unless it belongs to another operation. Freed before the steps, which take long chains
    /// apart. The lock of the operation guards it.
    final var source: IOOperation<Input, Middle>?
    final let steps: StepList
    private let sourceType: AsyncOperation.Type

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - source: The first step.
    ///   - weight: Its share in the progress.
    ///   - failurePolicy: What a step that fails or is cancelled means for the others.
    ///   - body: What runs beside the source, if anything does.
    ///   - describe: Describes the steps, if the operation does so itself.
    init(
        _ source: IOOperation<Input, Middle>, weight: Int64, failurePolicy: FailurePolicy = .cancelRemaining,
        body: CompositeBody? = nil, describe: (@Sendable (_ snapshot: inout ChildSnapshot) -> Void)? = nil
    ) {
        steps = StepList(failurePolicy: failurePolicy, body: body)
        sourceType = source.derivedFrom
        super.init()
        becomeComposite(of: steps.children)
        name = source.name
        steps.attach(
            to: self, start: { [unowned self] in startSource() },
            finished: { [unowned self] _, list in childrenFinished(with: takeResult(), &list) }, describe: describe)
        if steps.append(source, weight: weight) { self.source = source }
        adoptInput(of: source)
    }

    // What users know of it.
    override class var typeTitle: String { IOOperation<Input, Output>.typeTitle }

    override var derivedFrom: AsyncOperation.Type { sourceType }

    override var ownTitle: String? { sourceType.typeTitle }

    override func main(input: Input) {}

    /// Starts the work.
    func startSource() {
        run(steps, from: lock.withLock { source })
    }

    /// Returns the result of the operation and releases the source. Called once, when all steps have finished. The
    /// default implementation returns that there is none.
    func takeResult() -> Result<Output, any Error> { .failure(CancellationError()) }
}
