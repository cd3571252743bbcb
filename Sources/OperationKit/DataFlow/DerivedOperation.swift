import Foundation

/// An operation that was made from another one, its *source*, and runs that as its first step.
///
/// It takes over the name and the input of the source, and without a name it is called by the class of that.
final class DerivedOperation<Input: Sendable, Middle: Sendable, Output: Sendable>: IOOperation<Input, Output>,
    @unchecked Sendable
{
    /// Makes the result. Called once, when all steps have finished. There is no source if that belongs to another operation.
    typealias MakeResult = @Sendable (_ source: IOOperation<Input, Middle>?, _ maySucceed: Bool) throws -> Output
    /// Follows the source, in a task, and may run another operation.
    typealias Sequel = @Sendable (_ source: IOOperation<Input, Middle>, _ children: ChildScheduler) async -> Void

    // Set until the end. The source is freed before the steps, which take long chains apart. The lock of the operation guards them.
    private var source: IOOperation<Input, Middle>?
    private var sequel: Sequel?
    private var makeResult: MakeResult?
    private let steps: MacroSteps
    private let sourceTitle: String

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - source: The first step.
    ///   - sequel: What follows it. The last tenth of the progress is left for that.
    ///   - makeResult: Makes the result.
    init(_ source: IOOperation<Input, Middle>, then sequel: Sequel? = nil, result makeResult: @escaping MakeResult) {
        self.sequel = sequel
        self.makeResult = makeResult
        // Neither of the two steps that there are at most means anything for the other.
        steps = MacroSteps(failurePolicy: .continueAll, body: sequel == nil ? nil : CompositeBody())
        sourceTitle = source.titleInMessages
        super.init()
        name = source.name
        steps.children.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self] in startSource() },
                finished: { [unowned self] _, list in
                    let result = takeResult().mapError(\.marked)
                    childrenFinished(withResult: { _, _ in result }, &list)
                },
                describer: steps))
        if steps.append(source, weight: sequel == nil ? 1 : 9) {
            self.source = source
            if sequel != nil { steps.children.changeProgress { $0.added(1) } }
        }
        takeInput(of: source)
    }

    // What users know of it.
    override class var typeTitle: String { IOOperation<Input, Output>.typeTitle }

    override var ownTitle: String? { sourceTitle }

    override func main(input: Input) {}

    private func startSource() {
        let (source, hasSequel) = lock.withLock { (self.source, sequel != nil) }
        guard let source, hasSequel else { return run(steps, from: source) }
        runBody(in: steps.children, start: { run(steps, from: source) }) { [unowned self, children = steps.children] in
            await children.waitForEnd(of: source)
            // The end of the body may be that of the operation, by when the closure has been released.
            if let sequel = lock.withLock({ sequel.take() }) { await sequel(source, children) }
            return true
        }
    }

    /// Releases all before the end, and after unlocking: what they hold may run arbitrary code when it is freed.
    private func takeResult() -> Result<Output, any Error> {
        let (source, _, makeResult, maySucceed) = withState {
            (self.source.take(), sequel.take(), self.makeResult.take(), $0.lifecycle.reachedMain)
        }
        return Result {
            guard let makeResult else { throw CancellationError() }
            return try makeResult(source, maySucceed)
        }.mapError { source?.skippedError?.passingOnCause(in: $0) ?? $0 }
    }
}
