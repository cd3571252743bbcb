import Foundation

/// A series of jobs, each a closure that gets the previous result, and returns a value or an operation to run next.
///
/// ```swift
/// let length = Waterfall<String, String>(name: "length")
///     .then { path in URL(fileURLWithPath: path) }
///     .then { url in TaskOperation { try Data(contentsOf: url) } }
///     .then { data in data.count }
/// length.input = "/etc/hosts"
/// length.completion = { result in print(result) }
/// length.start()
/// ```
///
/// A new waterfall has no jobs, and returns its input. `then` returns a longer one, and consumes its
/// receiver as ``MacroOperation`` does: started by itself, that ends with ``ChainError/consumed(chain:)``. Name,
/// input and suspension move along; set everything else on the last one. The types are checked end to end.
///
/// Unlike the steps of a macro, the operations need not exist before: each is created when its turn comes, and released
/// when it has finished. A waterfall of a million jobs holds one of them at a time.
///
/// ## Failure and cancellation
///
/// The first error, thrown by a job or of an operation that it returned, ends the waterfall immediately: the next job is not
/// called. So does an operation that was cancelled. ``failedStep`` says which one it was. Cancelling the waterfall
/// cancels the operation that runs; no further job is called, apart from one whose turn has just come, and the waterfall
/// ends with `CancellationError` or the reason, unless that operation reports another error. `finish(withError:)` and `finish(with:)` from outside do the same,
/// and the waterfall ends with the outcome it was given.
///
/// ## Suspension
///
/// ``suspend()`` has effect between jobs, before the first one too: a job or an operation that runs goes on to its end.
/// A suspended waterfall that is cancelled ends nevertheless.
///
/// ## Threads
///
/// The jobs are called one after the other, on threads of a private queue. Jobs that return values run in a loop without
/// leaving the thread. `asyncCompletionBlock` and then ``completion`` are called on the thread on which the last job
/// ended.
public final class Waterfall<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let runner: JobRunner
    private var resultBlock: Completion?
    private var failure: SuboperationError?

    /// A block that takes the result.
    public typealias Completion = @Sendable (_ result: Result<Output, any Error>) -> Void

    private init(_ runner: JobRunner) {
        self.runner = runner
        super.init()
        becomeComposite(of: runner.children)
        runner.children.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self] in startJobs() },
                finished: { [unowned self] failures in jobsFinished(failures: failures) },
                outcomeWasDelivered: { [unowned self] in callCompletion() },
                describe: { [weak runner] in runner?.describe(&$0) }))
    }

    /// Called once with the result, before the waterfall becomes finished and after `asyncCompletionBlock`; for a
    /// waterfall that was cancelled, too. Released after the call. A block that is set later is dropped.
    public var completion: Completion? {
        get { lock.withLock { resultBlock } }
        set {
            var previous = newValue
            withState { if $0.lifecycle.outcome == nil { swap(&previous, &resultBlock) } }
        }
    }

    /// Whether the waterfall has been started and has not finished, suspended or not.
    public var isRunning: Bool { isExecuting }

    /// Whether jobs are kept from beginning. May change at any time.
    public var isSuspended: Bool {
        get { runner.children.isSuspended }
        set { if !isConsumed { runner.children.isSuspended = newValue } }
    }

    /// Keeps jobs from beginning, until ``resume()``.
    public func suspend() {
        isSuspended = true
    }

    /// Lets jobs begin again.
    public func resume() {
        isSuspended = false
    }

    /// The job that failed or was cancelled: the name of its operation, or “job” and its index, its index, and its error.
    /// `nil` before the end, on success, and when the waterfall itself was cancelled or finished.
    public var failedStep: SuboperationError? {
        lock.withLock { failure }
    }

    /// Does nothing: the jobs are called by `start()`.
    public override func main(input: Input) {}

    private func startJobs() {
        if let input = requiredInput() { runner.start(with: WaterfallValue(input), for: self) }
    }

    private func jobsFinished(failures: [SuboperationError]) {
        let failure = failures.first.map { runner.renumbered($0) }
        lock.withLock { self.failure = failure }
        let output = runner.output as? WaterfallValue<Output>
        runner.discard()
        if let failure {
            childrenFinished(with: .failure(failure.error))
        } else if let output {
            childrenFinished(with: .success(output.value))
        } else {
            childrenFinished(with: .failure(CancellationError()))
        }
    }

    private func callCompletion() {
        let block = lock.withLock { resultBlock.take() }
        if let block, let result { block(result) }
    }
}

extension Waterfall where Input == Output {
    /// Creates a waterfall without jobs.
    ///
    /// - Parameter name: Its name, for messages and errors.
    public convenience init(name: String? = nil) {
        self.init(JobRunner())
        self.name = name
    }
}

// Building.
extension Waterfall {
    /// The waterfall with one more job, which makes a value.
    ///
    /// - Parameters:
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns the next one, or throws. Called once at most, when its turn comes,
    ///     and released then.
    /// - Returns: A new waterfall. This one is consumed.
    public func then<Next: Sendable>(
        progressWeight: Int64 = 1, _ job: @escaping @Sendable (Output) throws -> Next
    ) -> Waterfall<Input, Next> {
        extended { runner in runner.append(Self.job(job), weight: progressWeight) }
    }

    /// The waterfall with one more job, which makes an operation. That is run, and its output is the next result.
    ///
    /// - Parameters:
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns an operation that has its input, is part of no other operation, and
    ///     is started by the waterfall only; or throws. Called once at most, when its turn comes, and released then.
    /// - Returns: A new waterfall. This one is consumed.
    public func then<Made: OutputOperation>(
        progressWeight: Int64 = 1, _ job: @escaping @Sendable (Output) throws -> Made
    ) -> Waterfall<Input, Made.Output> {
        extended { runner in
            runner.append(
                Self.job { output -> WaterfallStep<Made.Output> in .operation(try job(output)) }, weight: progressWeight
            )
        }
    }

    /// The waterfall with one more job, which decides whether it makes a value or an operation to run.
    ///
    /// - Parameters:
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns what comes next, or throws. Called once at most, when its turn
    ///     comes, and released then.
    /// - Returns: A new waterfall. This one is consumed.
    public func then<Next: Sendable>(
        progressWeight: Int64 = 1, _ job: @escaping @Sendable (Output) throws -> WaterfallStep<Next>
    ) -> Waterfall<Input, Next> {
        extended { runner in runner.append(Self.job(job), weight: progressWeight) }
    }

    /// The waterfall with a list of jobs more, each of which makes a value of the same type.
    ///
    /// - Parameters:
    ///   - jobs: Called one after the other, each with the result of the one before.
    ///   - progressWeight: The share of each in the progress, in proportion to those of the other jobs.
    /// - Returns: A new waterfall. This one is consumed.
    public func then(
        _ jobs: [@Sendable (Output) throws -> Output], progressWeight: Int64 = 1
    ) -> Waterfall<Input, Output> {
        extended { runner in
            for job in jobs { runner.append(Self.job(job), weight: progressWeight) }
        }
    }

    /// The waterfall with a list of jobs more, each of which decides whether it makes a value or an operation to run.
    ///
    /// - Parameters:
    ///   - jobs: Called one after the other, each with the result of the one before.
    ///   - progressWeight: The share of each in the progress, in proportion to those of the other jobs.
    /// - Returns: A new waterfall. This one is consumed.
    public func then(
        _ jobs: [@Sendable (Output) throws -> WaterfallStep<Output>], progressWeight: Int64 = 1
    ) -> Waterfall<Input, Output> {
        extended { runner in
            for job in jobs { runner.append(Self.job(job), weight: progressWeight) }
        }
    }

    private static func job<Next: Sendable>(
        _ job: @escaping @Sendable (Output) throws -> Next
    ) -> JobRunner.Job {
        { .value(WaterfallValue(try job(open($0)))) }
    }

    private static func job<Next: Sendable>(
        _ job: @escaping @Sendable (Output) throws -> WaterfallStep<Next>
    ) -> JobRunner.Job {
        { try job(open($0)).result }
    }

    private static func open(_ value: any WaterfallResult) -> Output {
        guard let value = value as? WaterfallValue<Output> else {
            preconditionFailure("OperationKit: a waterfall's job got \(type(of: value)) instead of \(Output.self)")
        }
        return value.value
    }

    /// Returns a new waterfall with the jobs of this one, and what `append` adds to them.
    private func extended<Next>(_ append: (JobRunner) -> Void) -> Waterfall<Input, Next> {
        let name = displayName
        let refusal = giveChildrenAway(finishingWith: ChainError.consumed(chain: name)) {
            isPending, isPart -> ChainError? in
            if isPart { return .alreadyUsed(operation: name, chain: name) }
            if isConsumed { return .consumed(chain: name) }
            return isPending ? nil : .alreadyStarted(chain: name)
        }
        let waterfall = Waterfall<Input, Next>(refusal == nil ? runner : JobRunner())
        waterfall.name = self.name
        waterfall.input = input
        if let refusal {
            waterfall.finish(withError: refusal)
        } else {
            if isAwaitedByComposite { waterfall.noteAwaitedByComposite() }
            append(runner)
        }
        return waterfall
    }
}

/// What a job of a ``Waterfall`` makes: the next result, or an operation that makes it.
public struct WaterfallStep<Next: Sendable>: Sendable {
    let result: JobRunner.Made

    /// The next result.
    public static func value(_ value: Next) -> WaterfallStep {
        WaterfallStep(result: .value(WaterfallValue(value)))
    }

    /// An operation that makes the next result. It has its input, is part of no other operation, and is started by the
    /// waterfall only. If it succeeds without an output, the waterfall ends with
    /// ``IOOperationError/missingOutput(operation:)``.
    public static func operation<Made: OutputOperation>(_ operation: Made) -> WaterfallStep where Made.Output == Next {
        let output: @Sendable () -> (any WaterfallResult)? = { [weak operation] in
            operation?.output.map { WaterfallValue($0) }
        }
        return WaterfallStep(result: .operation(operation, output: output))
    }
}
