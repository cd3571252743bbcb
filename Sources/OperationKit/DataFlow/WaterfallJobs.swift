import Foundation

/// The jobs of a waterfall: collected first, and moved from waterfall to waterfall as it grows, then called one after the other.
final class WaterfallJobs: ChildDescriber {
    /// A result on its way from one job to the next: a ``Reference`` to it.
    typealias Value = any AnyObject & Sendable
    typealias Job = @Sendable (Value) throws -> Made

    /// What a job makes. The closure for the output does not hold the operation.
    enum Made {
        case value(Value)
        case operation(AsyncOperation, output: @Sendable () -> Value?)
    }

    let children = ChildScheduler(limit: 1, noun: "jobs", body: CompositeBody())

    private typealias QueuedJob = (job: Job, name: String?, weight: Int64)

    private struct State {
        /// In reverse order once the run has started, so that each can be removed, and released, when it is called.
        var jobs: [QueuedJob] = []
        var count = 0
        var started = 0
        /// What a failure of the job at work is called.
        var name = ""
        var failure: SuboperationError?
    }

    private let state = Locked(State())

    func append(_ job: @escaping Job, name: String?, weight: Int64) {
        state.withLock { state in
            state.jobs.append((job, name, ProgressLedger.weight(weight)))
            state.count += 1
        }
    }

    /// How many jobs there are.
    var count: Int { state.withLock { $0.count } }

    /// The job that has failed.
    var failure: SuboperationError? { state.withLock { $0.failure } }

    /// What users call a job without a name whose operation has none either.
    static func name(ofJob index: Int) -> String { "job \(index)" }

    /// Releases the jobs that were not called.
    func discard() {
        _ = state.withLock { exchange(&$0.jobs, with: []) }
    }

    /// Describes the run: how many jobs have started, and the operation that the last one made, if that has not finished.
    func describe(_ snapshot: inout ChildSnapshot) {
        let (started, count) = state.withLock { ($0.started, $0.count) }
        // Without the one that waits for the end of a suspension.
        snapshot.children.removeAll { !($0.operation is any OutputOperation) }
        snapshot.summary = ["\(started) of \(count) jobs have started"] + (children.isSuspended ? ["suspended"] : [])
    }
}

// MARK: - Running

extension WaterfallJobs {
    /// Where the jobs that make values have come to.
    private enum Progress {
        case done(Value)
        case suspended(Value)
        case operation(AsyncOperation, QueuedJob, output: @Sendable () -> Value?)
    }

    /// Calls the jobs. The operations that they make run as children.
    func run(with input: Value) async throws -> Value {
        let total = state.withLock { state in
            state.jobs.reverse()
            return state.jobs.reduce(0) { $0 + $1.weight }
        }
        children.changeProgress { $0.added(total) }
        do {
            return try await output(of: input)
        } catch {
            if error.isCancellation, children.isStopped { throw error }
            // A job has failed, or was cancelled by itself.
            state.withLock { state in
                state.failure = SuboperationError(
                    name: state.name, index: state.started - 1, error: error, siblingCount: state.count)
            }
            throw error
        }
    }

    private func output(of input: Value) async throws -> Value {
        var value = input
        while true {
            // A result is not kept while an operation runs that was made from it.
            let next = try await children.call { [value = exchange(&value, with: self)] in
                try self.makeValues(from: value)
            }
            switch next {
            case .done(let result):
                return result
            case .suspended(let result):
                value = result
                // It ends immediately as a child, which it can only when the waterfall is not suspended.
                let resumption = AsyncBlockOperation { finish in finish() }
                resumption.hideFromObservers()
                try await children.runChild(resumption)
            case .operation(let operation, let job, let output):
                value = try await run(operation, of: job, output: output)
            }
        }
    }

    /// Calls jobs in a loop, as long as they make values.
    private func makeValues(from input: Value) throws -> Progress {
        var value = input
        while true {
            if children.cancelsNewChildren { throw CancellationError() }
            if children.isSuspended, state.withLock({ !$0.jobs.isEmpty }) { return .suspended(value) }
            guard let job = nextJob() else { return .done(value) }
            switch try job.job(value) {
            case .value(let next):
                value = next
                children.changeProgress { $0.finished += job.weight }
            case .operation(let operation, let output):
                return .operation(operation, job, output: output)
            }
        }
    }

    /// Runs the operation that a job has made, under the name of the job if it has none. An operation that is refused keeps its name.
    private func run(
        _ operation: AsyncOperation, of job: QueuedJob, output: @Sendable () -> Value?
    ) async throws -> Value {
        let isNamed = operation.name == nil && job.name != nil
        if isNamed { operation.name = job.name }
        do {
            try await children.runChild(operation, weight: job.weight)
        } catch {
            if isNamed { operation.name = nil }
            throw error
        }
        if operation.error == nil, let output = output() { return output }
        let name = operation.displayName(at: state.withLock { $0.started - 1 })
        state.withLock { $0.name = name }
        throw operation.error ?? operation.missingOutput
    }

    private func nextJob() -> QueuedJob? {
        state.withLock { state in
            guard let job = state.jobs.popLast() else { return nil }
            state.name = job.name ?? Self.name(ofJob: state.started)
            state.started += 1
            return job
        }
    }
}
