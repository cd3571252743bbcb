public import Foundation

/// An operation that turns each element of an array into an output, several at a time.
///
/// ```swift
/// let lengths = MapOperation<String, Int>(name: "lengths", maxConcurrentOperationCount: 4) { word in word.count }
/// lengths.input = ["one", "three"]
/// let answer = try await OperationQueue().run(lengths)
/// assert(answer == [3, 5])
/// ```
///
/// The input is the array, the output has an element for each of its elements, in their order. So it can be a step of a
/// ``MacroOperation`` or a ``Waterfall``. On a queue it takes one place, that of one operation; its own limit says how
/// many elements are in flight. To take a place on the queue for each element, use `map(_:limit:_:)` of
/// `OperationQueue`.
///
/// The closure is called once for each element, in a task whose priority follows `qualityOfService`: one of its own, or, with a
/// limit of 1, that of the operation.
/// Elements are given to threads in the order of the array. No thread is blocked. The closure does not see task-local values:
/// `map(_:limit:_:)` of `OperationQueue` keeps them.
///
/// ## Failures
///
/// The operation succeeds if there is an output for each element. Otherwise it ends with
/// ``CompoundOperationError/suboperationFailure(name:errors:)``, which has the index of each element that failed. With
/// `continueAll`, the others go on; with `cancelRemaining` the first failure keeps further elements from starting and
/// cancels those in flight. An element that ends with `CancellationError` has not failed; if no other one has, the
/// operation ends with ``CompoundOperationError/cancelled(name:errors:reason:)``. ``results`` has the outcome of each
/// element. A limit below 1 is a ``CoordinationError/invalidLimit(type:maxConcurrentOperationCount:)``, and nothing
/// runs.
///
/// ## Cancellation
///
/// No further element starts, those in flight are cancelled, and the operation ends after them, with
/// ``CompoundOperationError/cancelled(name:errors:reason:)`` unless all have an output, or with a reason that is itself a
/// cancellation. An operation that has not started ends with `CancellationError`. If other code calls `finish(with:)` or `finish(withError:)`, the operation
/// ends without waiting, as a ``TaskOperation`` does, and the elements in flight are cancelled.
///
/// ## Progress
///
/// `progress` counts the elements that have ended, whatever their outcome.
public final class MapOperation<Element: Sendable, Output: Sendable>: IOOperation<[Element], [Output]>,
    @unchecked Sendable
{
    /// What makes an output of an element.
    public typealias Transform = @Sendable (Element) async throws -> Output

    /// The maximum number of elements in flight.
    public let maxConcurrentOperationCount: Int
    /// What the first failure means for the other elements.
    public let failurePolicy: FailurePolicy
    /// When the closure is called again for an element for which it has thrown.
    ///
    /// Retries send no events. If the operation is cancelled during the pause before a retry, the element ends with
    /// `CancellationError`.
    public let retryPolicy: RetryPolicy?

    private let suspension = Suspension()
    // The lock of the operation guards it.
    private var unsuccessfulResults: [Result<Output, any Error>] = []

    /// Creates an operation that turns each element of its input into an output.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - maxConcurrentOperationCount: The maximum number of elements in flight. The default is the number of active
    ///     processors, which suits elements that compute; for elements that mostly wait, set more. Less than 1 ends the
    ///     operation with an error.
    ///   - failurePolicy: What the first failure means for the other elements.
    ///   - policy: When the closure is called again for an element for which it has thrown. An element keeps its place among those
    ///     in flight meanwhile, and has failed when the last attempt has. With a seed, each element has other delays.
    ///   - transform: Makes an output of an element. It may be synchronous.
    public init(
        name: String? = nil, maxConcurrentOperationCount: Int = ProcessInfo.processInfo.activeProcessorCount,
        failurePolicy: FailurePolicy = .continueAll, retry policy: RetryPolicy? = nil,
        _ transform: @escaping Transform
    ) {
        retryPolicy = policy
        self.maxConcurrentOperationCount = maxConcurrentOperationCount
        self.failurePolicy = failurePolicy
        super.init()
        self.name = name
        taskWork = TaskWork { [unowned self] input in try await outputs(of: input, transform) }
    }

    /// Whether elements are kept from starting. Those in flight go on.
    ///
    /// May be changed on any thread, at any time. Cancelling a suspended operation ends it.
    public var isSuspended: Bool {
        get { suspension.isSuspended }
        set { suspension.isSuspended = newValue }
    }

    override var waitDescription: String? { isSuspended ? "suspended" : super.waitDescription }

    /// The outcome of each element, in the order of the input, once the operation has finished: its output or its
    /// error, which is `CancellationError` where it did not start. Empty before, if the work could not begin, and if other
    /// code has ended the operation with an error. Can be read from any thread, from `asyncCompletionBlock` on.
    public var results: [Result<Output, any Error>] {
        output?.map(Result.success) ?? lock.withLock { unsuccessfulResults }
    }

    /// Does nothing: the task is started by `start()`.
    public override func main(input: [Element]) {}

    override var startProblem: (any Error)? { super.startProblem ?? optionsError }

    private var optionsError: (any Error)? {
        if maxConcurrentOperationCount < 1 {
            return CoordinationError.invalidLimit(
                type: displayName, maxConcurrentOperationCount: maxConcurrentOperationCount)
        }
        return retryPolicy?.problem.map { RetryError.invalidPolicy(operation: displayName, problem: $0) }
    }

    private func outputs(of input: [Element], _ transform: @escaping Transform) async throws -> [Output] {
        if let optionsError { throw optionsError }
        let progress = progress
        progress.totalUnitCount = Int64(max(input.count, 1))
        let (name, retryPolicy, clock) = (displayName, retryPolicy, clock)
        var results = Array(
            repeating: Result<Output, any Error>.failure(CancellationError()), count: input.count)
        var iterator = input.makeIterator()
        // Ignore the error: the results show a cancellation, too.
        try? await forEachConcurrently(
            limit: maxConcurrentOperationCount, suspension: suspension, next: { iterator.next() },
            perform: { index, element in
                await Result {
                    guard let retryPolicy else { return try await transform(element) }
                    return try await retryPolicy.perform(
                        named: { "\(name), item \(index)" }, index: index, clock: clock,
                        { try await transform(element) })
                }
            },
            ended: { index, result in
                results[index] = result
                progress.completedUnitCount += 1
                return failurePolicy == .continueAll || result.error?.isCancellation != false
            })
        let outputs = results.compactMap { try? $0.get() }
        if outputs.count == input.count { return outputs }
        // Not if it has ended with an outcome from outside: what can be read from then on does not change any more.
        withState { [results] in if $0.lifecycle.acceptsOutcome { unsuccessfulResults = results } }
        let failures = ChildFailures(errors: SuboperationError.failures(of: results.map(\.error), noun: "item"))
        throw failures.error(
            name: displayName, isCancelled: isCancelled || failures.errors.isEmpty,
            reason: cancellationReason) ?? CancellationError()
    }
}
