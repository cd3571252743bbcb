import Foundation

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
    /// ``ChainError/operationNotRun(job:chain:)`` when this job's turn comes: use ``thenRun(name:progressWeight:_:)``, or
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
        extended { jobs in
            jobs.append(
                self.job(making: job, name: name ?? WaterfallJobs.name(ofJob: jobs.count)), name: name,
                weight: progressWeight)
        }
    }

    /// Returns the waterfall with one more job, which makes a value asynchronously.
    ///
    /// The closure runs in a task of its own, as that of a ``TaskOperation`` does, with the priority of the waterfall.
    /// Cancelling the waterfall cancels the task, and the waterfall ends when the closure does.
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
        extended { jobs in
            jobs.append(
                { value in
                    let output = Self.open(value)
                    return .task { Reference(try await job(output)) }
                }, name: name, weight: progressWeight)
        }
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
    ///     is started by the waterfall only; or throws. Called once at most, when its turn comes, and released then.
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
    ///     is started by the waterfall only; or throws. Called once at most, when its turn comes, and released then.
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
    ///     comes, and released then.
    /// - Returns: A new waterfall. This one is consumed.
    public func thenDecide<Next: Sendable>(
        name: String? = nil, to result: Next.Type = Next.self, progressWeight: Int64 = 1,
        _ job: @escaping @Sendable (Output) throws -> WaterfallStep<Next>
    ) -> Waterfall<Input, Next> {
        extended { jobs in
            jobs.append({ try job(Self.open($0)).result }, name: name, weight: progressWeight)
        }
    }
}
