import Foundation

/// The jobs of a waterfall: collected first, and moved from waterfall to waterfall as it grows, then called one after the
/// other.
///
/// The children of the waterfall are turns and operations: a turn calls jobs in a loop until one makes an operation.
/// Then that operation and another turn after it become children.
final class JobRunner: Sendable {
    typealias Job = @Sendable (any WaterfallResult) throws -> Made

    /// What a job makes. The closure for the output does not hold the operation.
    enum Made: Sendable {
        case value(any WaterfallResult)
        case operation(AsyncOperation, output: @Sendable () -> (any WaterfallResult)?)
        case task(@Sendable () async throws -> any WaterfallResult)
    }

    let children = ChildScheduler(limit: 1, failurePolicy: .cancelRemaining, countsCancellations: true, unit: "jobs")

    private struct QueuedJob {
        let job: Job
        let name: String?
        let weight: Int64
    }

    private struct State {
        /// In reverse order once the run has started, so that each can be removed, and released, when it is called.
        var jobs: [QueuedJob] = []
        var count = 0
        /// The name of the job that was started last.
        var name: String?
        var started = 0
        var value: (any WaterfallResult)?
        /// Reads the result of the operation that the last job made.
        var pending: (@Sendable () -> (any WaterfallResult)?)?
        var isFinished = false

        mutating func next() -> (QueuedJob, any WaterfallResult)? {
            guard let value, let job = jobs.popLast() else {
                isFinished = true
                return nil
            }
            started += 1
            name = job.name
            return (job, value)
        }
    }

    private let state = Locked(State())

    func append(_ job: @escaping Job, name: String? = nil, weight: Int64) {
        state.withLock { state in
            state.jobs.append(QueuedJob(job: job, name: name, weight: ProgressLedger.weight(weight)))
            state.count += 1
        }
    }

    /// How many jobs there are.
    var count: Int { state.withLock { $0.count } }

    /// What users call a job without a name whose operation has none either.
    static func name(ofJob index: Int) -> String { "job \(index)" }

    /// The last result, once all jobs have been done.
    var output: (any WaterfallResult)? { state.withLock { $0.isFinished ? $0.value : nil } }

    /// Releases the jobs that were not called, and the result.
    func discard() {
        let discarded = state.withLock { (exchange(&$0.jobs, with: []), $0.value.take(), $0.pending.take()) }
        withExtendedLifetime(discarded) {}
    }

    /// Calls the jobs as the children of a waterfall.
    func start(with input: any WaterfallResult, for waterfall: AsyncOperation) {
        children.prepareQueue(for: waterfall)
        let total = state.withLock { state in
            state.value = input
            state.jobs.reverse()
            return state.jobs.reduce(0) { $0 + $1.weight }
        }
        children.changeProgress { $0.added(total) }
        let turn = JobTurnOperation(self)
        _ = turn.adopt(into: children)
        children.addAdopted(turn, weight: 0)
        children.run()
    }

    /// Calls jobs until one makes an operation, or fails, or until there are none left.
    func runJobs(in turn: JobTurnOperation) {
        do {
            try takeResult(before: turn)
            while !turn.isCancelled {
                if children.isSuspended {
                    try addTurn(after: nil, name: nil, weight: 0)
                    break
                }
                guard let (queued, value) = state.withLock({ $0.next() }) else { break }
                let weight = queued.weight
                switch try queued.job(value) {
                case .value(let value):
                    state.withLock { $0.value = value }
                    children.changeProgress { $0.done(weight) }
                case .operation(let operation, let output):
                    try run(operation, name: queued.name, weight: weight, output: output)
                    return _ = turn.finish()
                case .task(let body):
                    let operation = TaskOperation(
                        name: queued.name ?? Self.name(ofJob: state.withLock { $0.started } - 1), body)
                    operation.qualityOfService = children.queue.childQualityOfService
                    try run(operation, name: nil, weight: weight) { [weak operation] in operation?.output }
                    return _ = turn.finish()
                }
            }
            turn.finish()
        } catch {
            turn.finish(withError: error)
        }
    }

    /// Makes the operation of a job the next child, under the name of the job if it has none, and remembers how to
    /// read its output.
    private func run(
        _ operation: AsyncOperation, name: String?, weight: Int64,
        output: @escaping @Sendable () -> (any WaterfallResult)?
    ) throws {
        state.withLock { state in
            state.pending = output
            state.value = nil
        }
        try addTurn(after: operation, name: name, weight: weight)
    }

    /// The operation of the last job has finished with success: otherwise the turn would have been cancelled.
    private func takeResult(before turn: JobTurnOperation) throws {
        guard let pending = state.withLock({ $0.pending }) else { return }
        guard let result = pending() else {
            // The turn depends on that operation only.
            let operation = turn.dependencies.first ?? turn
            throw IOOperationError.missingOutput(operation: operation.displayName)
        }
        state.withLock { state in
            state.value = result
            state.pending = nil
        }
    }

    /// Adds a turn as the last child and, before it, the operation that it comes after, if there is one. An operation
    /// that is refused keeps its name.
    private func addTurn(after operation: AsyncOperation?, name: String?, weight: Int64) throws {
        // The waterfall is kept alive while it runs.
        guard let waterfall = children.operation else { return }
        let turn = JobTurnOperation(self)
        guard let operation else { return try children.add([turn], weights: [0], to: waterfall) }
        try waterfall.requireOutside(operation)
        turn.addDependency(operation)
        let isNamed = operation.name == nil && name != nil
        if isNamed { operation.name = name }
        do {
            try children.add([operation, turn], weights: [weight, 0], to: waterfall, inPlaceOf: weight)
        } catch {
            // The operation may finish just when the turn is freed.
            turn.removeDependency(operation)
            if isNamed { operation.name = nil }
            throw error
        }
    }

    /// Describes the run: how many jobs have started, and the operation that the last one made, if that has not
    /// finished.
    func describe(_ snapshot: inout ChildSnapshot) {
        let (started, count) = state.withLock { ($0.started, $0.count) }
        snapshot.children.removeAll { $0.operation is JobTurnOperation }
        snapshot.omitted = 0
        snapshot.summary = ["\(started) of \(count) jobs have started"] + (children.isSuspended ? ["suspended"] : [])
    }

    /// The failure with the index and the name of its job, as users count them.
    func renumbered(_ failure: SuboperationError) -> SuboperationError {
        let (index, count, jobName) = state.withLock { ($0.started - 1, $0.count, $0.name) }
        let name =
            failure.name.hasPrefix("\(JobTurnOperation.typeTitle) ") ? jobName ?? Self.name(ofJob: index) : failure.name
        return SuboperationError(name: name, index: index, error: failure.error, siblingCount: count)
    }
}

/// A result on its way from one job to the next.
protocol WaterfallResult: Sendable {}

final class WaterfallValue<Value: Sendable>: WaterfallResult {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// A child of a waterfall that calls jobs.
final class JobTurnOperation: AsyncOperation, @unchecked Sendable {
    private let runner: JobRunner

    init(_ runner: JobRunner) {
        self.runner = runner
        super.init()
        hideFromObservers()
    }

    override class var typeTitle: String { "turn of a waterfall" }

    override func main() {
        runner.runJobs(in: self)
    }
}
