import Foundation

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
