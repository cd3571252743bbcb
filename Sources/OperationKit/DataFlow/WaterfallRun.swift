import Foundation

/// The jobs of a waterfall: collected first, and moved from waterfall to waterfall as it grows, then called one after the
/// other.
///
/// The children of the waterfall are turns and operations: a turn calls jobs in a loop until one makes an operation.
/// Then that operation and another turn after it become children.
final class WaterfallRun: @unchecked Sendable {
    typealias Job = @Sendable (any WaterfallResult) throws -> Made

    /// What a job makes. The closure does not hold the operation.
    enum Made: Sendable {
        case value(any WaterfallResult)
        case operation(AsyncOperation, output: @Sendable () -> (any WaterfallResult)?)
    }

    private let lock = NSLock()
    /// The last one first once it has begun, so that each is released when it was called.
    private var jobs: [(job: Job, weight: Int64)] = []
    private var count = 0
    private var total: Int64 = 0
    private var begun = 0
    private var value: (any WaterfallResult)?
    private var pending: (@Sendable () -> (any WaterfallResult)?)?
    private var isOver = false
    private var wantsSuspension = false
    private var isCancelled = false
    private var isProgressWanted = false
    private var scheduler: ChildScheduler?

    func append(_ job: @escaping Job, weight: Int64) {
        lock.withLock {
            jobs.append((job, ProgressLedger.weight(weight)))
            total += ProgressLedger.weight(weight)
            count += 1
        }
    }

    /// The last result, once all jobs have been done.
    var output: (any WaterfallResult)? { lock.withLock { isOver ? value : nil } }

    var isSuspended: Bool { lock.withLock { wantsSuspension } }

    func setSuspended(_ isSuspended: Bool) {
        lock.withLock { wantsSuspension = isSuspended }
        applySuspension()
    }

    /// Tells the scheduler, also when several threads change it at once: whoever writes last has looked afterwards.
    private func applySuspension() {
        guard let scheduler = lock.withLock({ scheduler }) else { return }
        var applied: Bool
        repeat {
            applied = isSuspended
            scheduler.isSuspended = applied
        } while applied != isSuspended
    }

    /// Somebody wants to know the progress.
    func wantProgress() {
        let scheduler = lock.withLock {
            isProgressWanted = true
            return self.scheduler
        }
        scheduler?.startReportingProgress()
    }

    var fraction: Double {
        lock.withLock({ scheduler })?.fraction ?? 0
    }

    func childWasCancelled(_ child: Operation) {
        lock.withLock({ scheduler })?.childWasCancelled(child)
    }

    func childProgressed(_ child: AsyncOperation, to fraction: Double) {
        lock.withLock({ scheduler })?.childProgressed(child, to: fraction)
    }

    func cancelAll() {
        let scheduler = lock.withLock {
            isCancelled = true
            return self.scheduler
        }
        scheduler?.cancelAll()
    }

    /// Releases the jobs that were not called, and the result.
    func discard() {
        var discarded: [(job: Job, weight: Int64)] = []
        var last: (any WaterfallResult)?
        lock.withLock {
            swap(&discarded, &jobs)
            swap(&last, &value)
            pending = nil
        }
    }

    func begin(with input: any WaterfallResult, for waterfall: any Composite & ChildGroup) {
        let scheduler = ChildScheduler(limit: 1, failurePolicy: .cancelRemaining, countsCancellations: true)
        scheduler.queue.name = waterfall.displayName
        scheduler.queue.qualityOfService = waterfall.qualityOfService
        scheduler.addClaimed(WaterfallTurn(self, waterfall), weight: 0)
        let (total, isCancelled, isProgressWanted) = lock.withLock {
            self.scheduler = scheduler
            value = input
            jobs.reverse()
            return (self.total, self.isCancelled, self.isProgressWanted)
        }
        scheduler.changeProgress { $0.added(total) }
        applySuspension()
        if isCancelled { scheduler.cancelAll() }
        if isProgressWanted { scheduler.startReportingProgress() }
        scheduler.run(for: waterfall)
    }

    /// Calls jobs until one makes an operation, or fails, or until there are none left.
    func take(_ turn: WaterfallTurn, of waterfall: any Composite & ChildGroup) {
        do {
            try takeResult(before: turn)
            while !turn.isCancelled {
                if isSuspended {
                    // `setSuspended` may not have told the scheduler yet. The next turn would begin at once then, and
                    // add another one.
                    applySuspension()
                    try scheduler?.add([WaterfallTurn(self, waterfall)], weights: [0], to: waterfall)
                    break
                }
                guard let (job, weight, value) = next() else { break }
                switch try job(value) {
                case .value(let value):
                    lock.withLock { self.value = value }
                    scheduler?.changeProgress { $0.done(weight) }
                case .operation(let operation, let output):
                    lock.withLock {
                        pending = output
                        self.value = nil
                    }
                    return try begin(operation, weight: weight, after: turn, of: waterfall)
                }
            }
            turn.finish()
        } catch {
            turn.finish(withError: error)
        }
    }

    private func next() -> (Job, Int64, any WaterfallResult)? {
        lock.withLock {
            guard let value, let (job, weight) = jobs.popLast() else {
                isOver = true
                return nil
            }
            begun += 1
            return (job, weight, value)
        }
    }

    /// The operation of the last job has finished with success: otherwise the turn would have been cancelled.
    private func takeResult(before turn: WaterfallTurn) throws {
        guard let pending = lock.withLock({ pending }) else { return }
        guard let result = pending() else {
            // The turn depends on that operation only.
            let operation = turn.dependencies.first ?? turn
            throw IOOperationError.missingOutput(operation: operation.displayName)
        }
        lock.withLock {
            value = result
            self.pending = nil
        }
    }

    /// Has the operation that a job made run, and another turn after it.
    private func begin(
        _ operation: AsyncOperation, weight: Int64, after turn: WaterfallTurn, of waterfall: any Composite & ChildGroup
    ) throws {
        // What is around the waterfall waits for it, so both would wait for each other.
        if waterfall.isInside(operation) || operation.isComposite && operation.isExecuting {
            throw CompoundAdditionError.alreadyAdded(
                operation: operation.displayName, compound: waterfall.displayName)
        }
        let next = WaterfallTurn(self, waterfall)
        next.addDependency(operation)
        do {
            try scheduler?.add([operation, next], weights: [weight, 0], to: waterfall)
        } catch {
            // The operation may finish just when the turn is freed.
            next.removeDependency(operation)
            throw error
        }
        // Its share was counted from the beginning, and came with the operation once more.
        scheduler?.changeProgress { $0.added(-weight) }
        turn.finish()
    }

    /// Which job it is at, and the operation that this made, if it has not ended.
    func snapshot() -> ChildSnapshot {
        let (begun, count, isSuspended, scheduler) = lock.withLock {
            (self.begun, self.count, wantsSuspension, self.scheduler)
        }
        // There is one operation at a time, and the turn after it.
        var snapshot = scheduler?.snapshot(atMost: 2) ?? ChildSnapshot(notBegun: [], atMost: 0, unit: "jobs")
        snapshot.children.removeAll { $0.operation is WaterfallTurn }
        snapshot.omitted = 0
        snapshot.summary = ["\(begun) of \(count) jobs have begun"] + (isSuspended ? ["suspended"] : [])
        return snapshot
    }

    /// The failure as the user counts jobs.
    func placed(_ failure: SuboperationError) -> SuboperationError {
        let (index, count) = lock.withLock { (begun - 1, self.count) }
        let name = failure.name.hasPrefix("\(WaterfallTurn.self) ") ? "job \(index)" : failure.name
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
final class WaterfallTurn: AsyncOperation, @unchecked Sendable {
    private let run: WaterfallRun
    private let waterfall: any Composite & ChildGroup

    init(_ run: WaterfallRun, _ waterfall: any Composite & ChildGroup) {
        self.run = run
        self.waterfall = waterfall
        super.init()
    }

    override func main() {
        run.take(self, of: waterfall)
    }
}
