public import Foundation

/// One run of a ``CollectionOperation`` over a collection, as an operation. Its `input` is the collection.
///
/// ``CollectionOperation/operation(on:)`` makes it. Like every operation it runs once, can be put on a queue, into a
/// compound or into a chain, be cancelled and awaited.
///
/// It succeeds if no item failed. Otherwise its error is ``CompoundOperationError/suboperationFailure(name:errors:)``,
/// with the index of each item or batch that failed. As with compounds, `CancellationError` is no failure. Wrong
/// options end it with their ``CoordinationError``. How each item ended is told by ``errors``.
///
/// ## Cancellation
///
/// No further item is begun, apart from those whose turn has just come, those in flight are waited for, and the operation
/// finishes after them with ``CompoundOperationError/cancelled(name:errors:reason:)``. Items that have not begun have `CancellationError` in
/// their slots. `finish(withError:)` from outside does the same, but the operation ends with the outcome it was given.
public final class CollectionRun<CollectionType: Sendable>: IOOperation<[CollectionType], Void>, @unchecked Sendable {
    private enum Stage {
        case idle, running
        /// About to end without having run.
        case skipped
        /// The slots are there, and do not change any more.
        case over
    }

    /// What to do with a collection; holds the object that does it, until the run is over.
    private var plan: (@Sendable ([CollectionType]) -> CollectionPlan)?
    private var stage = Stage.idle
    /// Unowned by the run: it holds the run, until that is over.
    private weak var driver: CollectionDriver?
    private var slots: [(any Error)?] = []
    private var unitCount: Int?
    /// How many items or batches had ended when the run was over.
    private var endedCount = 0
    private var reporter: ProgressReporter?
    private var isProgressWanted = false

    init(name: String, plan: @escaping @Sendable ([CollectionType]) -> CollectionPlan) {
        self.plan = plan
        super.init(ending: .afterChildren)
        self.name = name
    }

    /// How each item or batch ended, once the operation has finished: a slot for each, in the order of the collection,
    /// with its error or `nil` for success. Empty before. Can be read from any thread, from `asyncCompletionBlock` on.
    public var errors: [(any Error)?] {
        lock.withLock { slots }
    }

    /// The progress of the run, counted in items or batches that have ended, however they did. The same as a fraction,
    /// and as a part of the compounds and chains around, is told by `progress`.
    ///
    /// It is made when it is first asked for; a run whose progress nobody asks for does not count. It is indeterminate
    /// until the operation starts, never goes back, and is complete before the operation finishes with success.
    /// Cancelling it cancels the operation.
    public var itemProgress: Progress {
        let made = lock.withLock {
            if let reporter { return reporter }
            let new = ProgressReporter { [weak self] in self?.cancel() }
            reporter = new
            return new
        }
        report()
        return made.progress
    }

    /// Does nothing: the run is begun by `start()`.
    public override func main(input: [CollectionType]) {}

    override func startWork(on input: [CollectionType]) {
        switch lock.withLock({ plan })?(input) {
        case nil:
            return
        case .units(let units, let word):
            let driver = CollectionDriver(
                units, qos: DispatchQoS(qualityOfService), unitEnded: { [weak self] in self?.report() },
                completion: { self.ended($0, self.count.ended, word: word) })
            guard begins(units.count, driver) else { return }
            // Whoever cancels from here on finds the driver.
            if isCancelled { driver.cancel() }
            driver.start()
        case .whole(let count, let perform):
            // Another thread may cancel the run before it begins, or right after.
            guard begins(count, nil) else { return }
            if isCancelled { return endedWithoutRun(count, word: "item") }
            perform { slots in self.ended(slots, slots.count { !($0 is CancellationError) }, word: "item") }
        case .invalid(let error):
            guard begins(0, nil) else { return }
            refused(error)
        }
    }

    override var isComposite: Bool { true }

    override var fractionOfChildren: Double {
        let (ended, total) = count
        return total.map { Double(ended) / Double(max($0, 1)) } ?? 0
    }

    override func progressIsWanted() {
        lock.withLock { isProgressWanted = true }
    }

    override func cancelChildren() {
        let (driver, isSkipped) = withState { state -> (CollectionDriver?, Bool) in
            // Before the start, `drainChildren()` will be called. After it, nothing has begun yet, as when the input is
            // missing, and nothing will.
            if case .idle = stage, state.lifecycle.isExecuting {
                stage = .skipped
                return (nil, true)
            }
            return (self.driver, false)
        }
        driver?.cancel()
        if isSkipped { endedWithoutRun() }
    }

    override func drainChildren() {
        let isFirst = lock.withLock {
            guard case .idle = stage else { return false }
            stage = .skipped
            return true
        }
        if isFirst { endedWithoutRun() }
    }

    override func succeeded() {
        guard let reporter = lock.withLock({ reporter }) ?? countAllAsEnded() else { return }
        // In one step with the report: no other thread may see the count before, and still be writing it afterward.
        reporter.report {
            _ = countAllAsEnded()
            return count
        }
    }

    /// - Returns: What has to be told.
    private func countAllAsEnded() -> ProgressReporter? {
        lock.withLock {
            endedCount = slots.count
            return reporter
        }
    }

    override func discardWork() {
        var discarded: (@Sendable ([CollectionType]) -> CollectionPlan)?
        lock.withLock { swap(&discarded, &plan) }
    }

    /// - Returns: Whether the run may begin. It may not if the operation has been told to end meanwhile.
    private func begins(_ count: Int, _ driver: CollectionDriver?) -> Bool {
        let begins = lock.withLock {
            guard case .idle = stage else { return false }
            stage = .running
            unitCount = count
            self.driver = driver
            return true
        }
        report()
        return begins
    }

    private func endedWithoutRun() {
        switch lock.withLock({ plan })?(input ?? []) {
        // The plan is there until the run has ended, which is what this does.
        case nil: return
        case .units(let units, let word): endedWithoutRun(units.count, word: word)
        case .whole(let count, _): endedWithoutRun(count, word: "item")
        case .invalid(let error): refused(error)
        }
    }

    private func endedWithoutRun(_ count: Int, word: String) {
        ended(Array(repeating: CancellationError(), count: count), 0, word: word)
    }
}

// What the run reports.
extension CollectionRun {
    private func refused(_ error: CoordinationError) {
        over(slots: [error], endedCount: 1) { _, _ in .failure(error) }
    }

    private func ended(_ errors: [(any Error)?], _ endedCount: Int, word: String) {
        let failures = errors.enumerated().compactMap { index, error -> SuboperationError? in
            guard let error, !(error is CancellationError) else { return nil }
            return SuboperationError(name: "\(word) \(index)", index: index, error: error, siblingCount: errors.count)
        }
        let name = displayName
        over(slots: errors, endedCount: endedCount) { isCancelled, reason in
            if isCancelled {
                .failure(CompoundOperationError.cancelled(name: name, errors: failures, reason: reason))
            } else if failures.isEmpty {
                .success(())
            } else {
                .failure(CompoundOperationError.suboperationFailure(name: name, errors: failures))
            }
        }
    }

    /// Ends the run. The first call decides: a strategy of the type's own may report its end repeatedly.
    private func over(slots: [(any Error)?], endedCount: Int, own: @escaping ProgressReporter.Outcome) {
        let (isFirst, reporter) = lock.withLock { () -> (Bool, ProgressReporter?) in
            if case .over = stage { return (false, nil) }
            stage = .over
            self.slots = slots
            self.endedCount = endedCount
            return (true, self.reporter)
        }
        guard isFirst else { return }
        report()
        guard let reporter else { return childrenFinished(own: own) }
        reporter.end { self.childrenFinished(own: own) }
    }

    /// Has both kinds of progress follow, if somebody asked for them.
    private func report() {
        let (reporter, isProgressWanted) = lock.withLock { (self.reporter, self.isProgressWanted) }
        if isProgressWanted { progressed(to: fractionOfChildren) }
        reporter?.report { count }
    }

    /// How many items or batches have ended, and how many there are, once that is known.
    private var count: (ended: Int, total: Int?) {
        lock.withLock {
            guard case .over = stage else { return (driver?.endedCount ?? 0, unitCount) }
            // An empty collection is done, too.
            return slots.isEmpty ? (1, 1) : (endedCount, slots.count)
        }
    }
}
