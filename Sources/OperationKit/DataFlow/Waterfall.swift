import Foundation

/// A series of jobs, each a closure that gets the previous result, and makes the next one.
///
/// ```swift
/// let length = Waterfall<String, String>(name: "length")
///     .then { path in URL(fileURLWithPath: path) }
///     .thenRun { url in TaskOperation(name: "read") { try Data(contentsOf: url) } }
///     .then { data in data.count }
///     .thenAwait { count in
///         try await Task.sleep(for: .milliseconds(count))
///         return "\(count) bytes"
///     }
/// length.input = "/etc/hosts"
/// length.completion = { result in print(result) }
/// length.start()
/// ```
///
/// A new waterfall has no jobs, and returns its input. Each kind of job has a method of its own:
///
/// | The job | Method |
/// |---|---|
/// | makes a value | ``then(name:to:progressWeight:_:)`` |
/// | makes a value, and awaits something | ``thenAwait(name:to:progressWeight:_:)`` |
/// | makes an operation, which is run; its output is the next result | ``thenRun(name:progressWeight:_:)`` |
/// | decides between a value and an operation | ``thenDecide(name:to:progressWeight:_:)`` |
///
/// Each returns a longer waterfall, and consumes its receiver as ``MacroOperation`` does: started by itself, that ends with
/// ``ChainError/consumed(chain:)``. Name, input, suspension and a cancellation move along; set everything else on the last one.
/// The types are checked end to end.
///
/// The compiler infers the types of the results. Where it gives up on a long chain, give it the type of each result:
/// `then(to: Int.self) { data in data.count }`. A mistake is then reported in the job where it is.
///
/// Unlike the steps of a macro, the operations need not exist before: each is created when its turn comes, and released
/// when it has finished. A waterfall of a million jobs holds one of them at a time.
///
/// ## Failure and cancellation
///
/// | What happens | How the waterfall ends |
/// |---|---|
/// | a job throws, or the operation that it made fails | immediately, with that error |
/// | the operation of a job is cancelled by itself | immediately, with `CancellationError`, or the reason |
/// | the waterfall is cancelled | with `CancellationError`, or the reason |
/// | the waterfall is cancelled, and the operation that runs fails with another error | with that error |
/// | `finish(withError:)` or `finish(with:)` is called on the waterfall | with that outcome |
///
/// No further job is called then, apart from one whose turn has just come. A cancelled waterfall cancels the operation that
/// runs, and finishes after it. ``failedStep`` says which job failed, or whose operation was cancelled by itself.
///
/// ## Suspension
///
/// ``suspend()`` has effect between jobs, before the first one too: a job or an operation that runs goes on to its end.
/// A suspended waterfall that is cancelled ends nevertheless.
///
/// ## Threads
///
/// The jobs are called one after the other, on the thread that starts the waterfall, if that belongs to an operation queue without an
/// `underlyingQueue`, on threads of a private queue or on those of the library. Jobs that return values run in a loop without leaving the
/// thread. `asyncCompletionBlock` and then ``completion`` are called on the thread of the last job, or on any one if that made an
/// operation.
public final class Waterfall<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let jobs: WaterfallJobs
    // The lock of the operation guards these.
    private var resultBlock: Completion?
    private var failure: SuboperationError?

    /// A block that takes the result.
    public typealias Completion = @Sendable (_ result: Result<Output, any Error>) -> Void

    private init(_ jobs: WaterfallJobs) {
        self.jobs = jobs
        super.init()
        becomeComposite(of: jobs.children, describer: jobs) { [unowned jobs] input in
            Self.open(try await jobs.run(with: Reference(input)))
        }
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

    /// Whether jobs are kept from starting. May change at any time.
    public var isSuspended: Bool {
        get { jobs.children.isSuspended }
        set { if !isConsumed { jobs.children.isSuspended = newValue } }
    }

    /// Keeps jobs from starting, until ``resume()`` is called.
    public func suspend() {
        isSuspended = true
    }

    /// Lets jobs start again.
    public func resume() {
        isSuspended = false
    }

    /// The job that failed or was cancelled by itself, and so ended the waterfall: its name, its index and its error. `nil` before
    /// the end, on success, and when another outcome stands because the waterfall itself was cancelled or finished. May be read on any
    /// thread.
    ///
    /// The name is that of the operation that the job made, or else the one that was given to the job. If neither has
    /// one, it is the type of the operation and a number or, for a job that made no operation, “job” and its index.
    public var failedStep: SuboperationError? {
        lock.withLock { failure }
    }

    override func bodyDecides() {
        failure = jobs.failure
    }

    /// Does nothing: the jobs are called by `start()`.
    public override func main(input: Input) {}

    override func releaseWork() {
        if !isConsumed { jobs.discard() }
        let block = lock.withLock { resultBlock.take() }
        if let block, let result { block(result) }
    }

    /// The value of a result, whose type has been checked where the jobs were added.
    static func open(_ value: WaterfallJobs.Value) -> Output {
        guard let value = value as? Reference<Output> else {
            preconditionFailure("OperationKit: a waterfall's job got \(type(of: value)) instead of \(Output.self)")
        }
        return value.value
    }
}

extension Waterfall where Input == Output {
    /// Creates a waterfall without jobs.
    ///
    /// - Parameter name: Its name, for messages and errors.
    public convenience init(name: String? = nil) {
        self.init(WaterfallJobs())
        self.name = name
    }
}

// MARK: - Building

/// What a job of a ``Waterfall`` makes: the next result, or an operation that makes it.
public struct WaterfallStep<Next: Sendable>: Sendable {
    let result: WaterfallJobs.Made

    /// The next result.
    public static func value(_ value: Next) -> WaterfallStep {
        WaterfallStep(result: .value(Reference(value)))
    }

    /// An operation that makes the next result. It has its input, is part of no other operation, and is started by the
    /// waterfall only. If it succeeds without an output, the waterfall ends with
    /// ``IOOperationError/missingOutput(operation:)``.
    public static func operation<Made: OutputOperation>(_ operation: Made) -> WaterfallStep where Made.Output == Next {
        WaterfallStep(result: .operation(operation) { [weak operation] in operation?.output.map(Reference.init) })
    }
}

// One name for each kind of job, and none that is overloaded by what its closure returns: the compiler would try all
// combinations along a chain.
extension Waterfall {
    /// Returns the waterfall with one more job, which makes a value.
    ///
    /// ```swift
    /// let area = Waterfall<Int, Int>().then { side in side * side }.then(name: "text") { area in "\(area) m²" }
    /// ```
    ///
    /// A job that has made an operation has not run it. If the result is an operation, the waterfall ends with
    /// ``ChainError/operationNotRun(job:chain:)``, also if it is in an optional: use ``thenRun(name:progressWeight:_:)``, or
    /// ``thenDecide(name:to:progressWeight:_:)`` to pass the operation on as a value.
    ///
    /// - Parameters:
    ///   - name: The name of the job, for messages and errors.
    ///   - result: The type of the next result, if it is to be given.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns the next one, or throws. Called once at most, when its turn comes,
    ///     and released then.
    /// - Returns: A new waterfall. This one is consumed.
    public func then<Next: Sendable>(
        name: String? = nil, to result: Next.Type = Next.self, progressWeight: Int64 = 1,
        _ job: @escaping @Sendable (Output) throws -> Next
    ) -> Waterfall<Input, Next> {
        let jobName = name ?? WaterfallJobs.name(ofJob: jobs.count)
        return thenDecide(name: name, progressWeight: progressWeight) { [unowned children = jobs.children] output in
            .value(try Self.value(job(output), of: jobName, in: children))
        }
    }

    /// Returns the waterfall with one more job, which makes a value asynchronously.
    ///
    /// The closure runs in a task of its own, as that of a ``TaskOperation`` does, with the priority of the waterfall.
    /// Cancelling the waterfall cancels the task, and the waterfall ends when the closure does. A result that is an
    /// operation is an error, as that of ``then(name:to:progressWeight:_:)``.
    ///
    /// - Parameters:
    ///   - name: The name of the job, for messages and errors.
    ///   - result: The type of the next result, if it is to be given.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns the next one, or throws. Called once at most, when its turn comes,
    ///     and released when it returns.
    /// - Returns: A new waterfall. This one is consumed.
    public func thenAwait<Next: Sendable>(
        name: String? = nil, to result: Next.Type = Next.self, progressWeight: Int64 = 1,
        _ job: @escaping @Sendable (Output) async throws -> Next
    ) -> Waterfall<Input, Next> {
        let taskName = name ?? WaterfallJobs.name(ofJob: jobs.count)
        return thenDecide(name: name, progressWeight: progressWeight) { [unowned children = jobs.children] output in
            // Other code may finish it, and so the waterfall, before the job has returned.
            let task = TaskOperation(name: taskName) { [weak children] in
                try Self.value(await job(output), of: taskName, in: children)
            }
            task.qualityOfService = children.queue.childQualityOfService
            return .operation(task)
        }
    }

    /// What a job returns as a value, unless that is an operation, which would not run.
    private static func value<Next>(_ value: Next, of job: String, in children: ChildScheduler?) throws -> Next {
        if value is Operation {
            throw ChainError.operationNotRun(job: job, chain: children?.operation?.displayName ?? "waterfall")
        }
        return value
    }

    /// Returns the waterfall with one more job, which makes an operation. That is run, and its output is the next result.
    ///
    /// ```swift
    /// let count = IOBlockOperation<String, Int>(name: "count") { $0.count }
    /// let waterfall = Waterfall<String, String>().thenRun { text in count.with(input: text) }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the job, for messages and errors. Its operation gets it, if that has no name.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns an operation that has its input, is part of no other operation, and
    ///     is started by the waterfall only; or throws. Called once at most, when its turn comes, and released when the operation has ended.
    /// - Returns: A new waterfall. This one is consumed.
    public func thenRun<Made: OutputOperation>(
        name: String? = nil, progressWeight: Int64 = 1, _ job: @escaping @Sendable (Output) throws -> Made
    ) -> Waterfall<Input, Made.Output> {
        thenDecide(name: name, to: Made.Output.self, progressWeight: progressWeight) { output in
            .operation(try job(output))
        }
    }

    /// Returns the waterfall with one more job, which makes an operation. That is run, and its output is the next result,
    /// of the type that is given.
    ///
    /// See ``thenRun(name:progressWeight:_:)``.
    ///
    /// - Parameters:
    ///   - name: The name of the job, for messages and errors.
    ///   - result: The type of the operation's output.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns an operation that has its input, is part of no other operation, and
    ///     is started by the waterfall only; or throws. Called once at most, when its turn comes, and released when the operation has ended.
    /// - Returns: A new waterfall. This one is consumed.
    public func thenRun<MadeInput: Sendable, Next: Sendable>(
        name: String? = nil, to result: Next.Type, progressWeight: Int64 = 1,
        _ job: @escaping @Sendable (Output) throws -> IOOperation<MadeInput, Next>
    ) -> Waterfall<Input, Next> {
        thenRun(name: name, progressWeight: progressWeight, job)
    }

    /// Returns the waterfall with one more job, which decides whether it makes a value or an operation to run.
    ///
    /// ```swift
    /// let cache = ["index": "<html>"]
    /// let page = Waterfall<String, String>().thenDecide(to: String.self) { name in
    ///     if let page = cache[name] { return .value(page) }
    ///     return .operation(TaskOperation { "<html>" + name })
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the job, for messages and errors.
    ///   - result: The type of the next result, if it is to be given.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other jobs.
    ///   - job: Gets the previous result and returns what comes next, or throws. Called once at most, when its turn
    ///     comes, and released when an operation that it returns to be run has ended.
    /// - Returns: A new waterfall. This one is consumed.
    public func thenDecide<Next: Sendable>(
        name: String? = nil, to result: Next.Type = Next.self, progressWeight: Int64 = 1,
        _ job: @escaping @Sendable (Output) throws -> WaterfallStep<Next>
    ) -> Waterfall<Input, Next> {
        let refusal = consume(jobs.children.detach)
        let waterfall = Waterfall<Input, Next>(refusal == nil ? jobs : WaterfallJobs())
        pass(to: waterfall)
        if let refusal {
            waterfall.finish(withError: refusal)
        } else {
            jobs.append({ try job(Self.open($0)).result }, name: name, weight: progressWeight)
        }
        return waterfall
    }
}
