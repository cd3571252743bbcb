import Dispatch
import Foundation

/// One run of a ``CollectionOperation`` over a collection, as an operation. Its `input` is the collection.
///
/// ``CollectionOperation/makeOperation(on:)`` creates it. Like every operation it runs once, can be put on a queue, into a
/// compound or into a chain, be cancelled and awaited.
///
/// It succeeds if no item failed, and it was not cancelled. Otherwise its error is
/// ``CompoundOperationError/suboperationFailure(name:errors:)``, with the index of each item or batch that failed. As with compounds,
/// `CancellationError` is no failure. Wrong options end it with their ``CoordinationError``. ``errors`` has the outcome of each item.
///
/// ## Progress
///
/// `progress` counts items, or batches, that have ended, whatever their outcome. Its total is known, and the progress
/// determinate, once the operation has started. It never falls, and is complete when the operation ends. An empty
/// collection counts as one batch.
///
/// ## Cancellation
///
/// No further item starts, apart from those whose turn has just come, those in flight are waited for, and the operation
/// finishes after them with ``CompoundOperationError/cancelled(name:errors:reason:)``. Items that have not started have
/// `CancellationError` in their slots. `finish(withError:)` does the same, but the operation ends with the outcome it
/// was given.
public final class CollectionRun<CollectionType: Sendable>: IOOperation<[CollectionType], Void>, @unchecked Sendable {
    private enum Stage: Equatable {
        case idle
        /// The object was asked to perform the run: it hands over its batches, or has its own implementation. Or the run is
        /// about to finish without that.
        case calling(isStopped: Bool)
        /// The slots are there, and do not change any more.
        case finished
    }

    /// What errors call an item or a batch.
    private let noun: String

    // The lock of the operation guards these.

    /// The object that performs the run; held until that is finished.
    private var object: UncheckedSendable<any CollectionOperation<CollectionType>>?
    private var stage = Stage.idle
    /// Weak, because the driver holds the run until that is finished.
    private weak var driver: CollectionDriver?
    private var slots: [(any Error)?] = []
    /// The number of items or batches, once that is known: at least 1, so that an empty collection is complete.
    private var unitCount: Int?
    private var isProgressObserved = false

    init(of object: some CollectionOperation<CollectionType>) {
        self.object = UncheckedSendable(object)
        noun = object.noun
        let children = CollectionChildren<CollectionType>()
        super.init()
        becomeComposite(of: children)
        children.run = self
        name = object.displayName
    }

    /// The outcome of each item or batch, once the operation has finished: a slot for each, in the order of the
    /// collection, with its error or `nil` for success. Empty before. Can be read from any thread, from
    /// `asyncCompletionBlock` on.
    public var errors: [(any Error)?] {
        lock.withLock { slots }
    }

    /// Does nothing: `start()` starts the run.
    public override func main(input: [CollectionType]) {}

    fileprivate func startItems() {
        guard let input = requiredInput(), let object = beginCall() else { return }
        // A cancellation before the call has found nothing to cancel.
        if isCancelled { return finishWithoutRun(of: object) }
        let completion = RunCompletion(self)
        let work: Result<CollectionWork, CoordinationError>? = RunRequest.work(of: ObjectIdentifier(object)) {
            object.performOperation(on: input, completion: completion.end)
        }
        // The default implementation does not use its completion.
        completion.isLossExpected = work != nil
        switch work {
        case .success(let work)?:
            let driver = CollectionDriver(
                work, qos: qualityOfService.equivalents.dispatch, itemEnded: { [weak self] in self?.reportProgress() })
            // A cancellation from here on finds the driver.
            if endCall(unitCount: work.source.count ?? 0, driver) { driver.cancel() }
            driver.start { slots, _ in self.finish(slots: slots) }
        case .failure(let error)?:
            finish(slots: [error], failure: error)
        case nil:
            _ = endCall(unitCount: input.count, nil)
        }
    }

    fileprivate func progressObserved() {
        lock.withLock { isProgressObserved = true }
    }

    override func releaseWork() {
        // Release the object after unlocking; its deinitializer may run arbitrary code.
        _ = lock.withLock { object.take() }
    }

    fileprivate func cancelItems() {
        let (driver, skipped) = withState { state -> (CollectionDriver?, (any CollectionOperation<CollectionType>)?) in
            switch stage {
            // Before the start and the preparations, `drainItems()` will be called. After them, nothing has started yet, as
            // when the input is missing, and nothing will.
            case .idle where state.lifecycle.isExecuting && !state.lifecycle.isBeforeMain:
                stage = .calling(isStopped: false)
                return (nil, object?.value)
            case .calling:
                stage = .calling(isStopped: true)
            default: break
            }
            return (self.driver, nil)
        }
        driver?.cancel()
        if let skipped { finishWithoutRun(of: skipped) }
    }

    fileprivate func drainItems() {
        if let object = beginCall() { finishWithoutRun(of: object) }
    }
}

// MARK: - The call

extension CollectionRun {
    /// - Returns: The object to be called. `nil` if the operation has been told to finish before.
    private func beginCall() -> (any CollectionOperation<CollectionType>)? {
        lock.withLock {
            guard stage == .idle else { return nil }
            stage = .calling(isStopped: false)
            return object?.value
        }
    }

    /// - Returns: Whether the run was cancelled, or `finish` was called on it, during the call.
    private func endCall(unitCount: Int, _ driver: CollectionDriver?) -> Bool {
        let isStopped = lock.withLock {
            // The object's own implementation may have ended the run.
            guard case .calling(let isStopped) = stage else { return false }
            self.unitCount = max(unitCount, 1)
            self.driver = driver
            return isStopped
        }
        reportProgress()
        return isStopped
    }

    /// Finishes the operation with the same error in the slot of each item or batch: one that is that of the run, too, or for none a
    /// cancellation.
    private func finishWithoutRun(of object: some CollectionOperation<CollectionType>, failure: (any Error)? = nil) {
        do throws(CoordinationError) {
            let batchSize = try CollectionStrategy(of: object).batchSize
            let count = batchCount(input?.count ?? 0, size: batchSize)
            finish(slots: Array(repeating: failure ?? CancellationError(), count: count), failure: failure)
        } catch {
            let error = failure ?? error
            finish(slots: [error], failure: error)
        }
    }
}

// MARK: - The outcome

extension CollectionRun {
    /// Finishes the operation after its batches, with an error of its own or with their failures. The first call decides:
    /// a type's own implementation may report its end repeatedly.
    fileprivate func finish(slots: [(any Error)?], failure: (any Error)? = nil) {
        let failures = failure == nil ? SuboperationError.failures(of: slots, noun: noun) : []
        let name = displayName
        let isFirst = lock.withLock {
            if stage == .finished { return false }
            stage = .finished
            self.slots = slots
            unitCount = max(slots.count, 1)
            return true
        }
        guard isFirst else { return }
        reportProgress()
        Trampoline.run {
            childrenFinished(&$0) { isCancelled, reason in
                if let failure { return .failure(failure) }
                return ChildFailures(errors: failures).outcome(name: name, isCancelled: isCancelled, reason: reason)
            }
        }
    }

    /// Ends the run soon, because the completion that a type's own implementation was given has been released.
    fileprivate func completionWasLost() {
        if lock.withLock({ stage == .finished }) { return }
        // The releasing thread may hold arbitrary locks.
        DedicatedThreads.callbacks.performAsync { [self] in
            guard let object = lock.withLock({ object?.value }) else { return }
            if isCancelled { return finishWithoutRun(of: object) }
            let error = LostFinishError.run(name: displayName)
            finishWithoutRun(of: object, failure: error)
            ExecutionRecording.report(.lostFinish(error, operation: nil))
        }
    }

    private func reportProgress() {
        guard lock.withLock({ isProgressObserved }), let (fraction, unitCount) = share else { return }
        progressed(to: fraction, of: unitCount)
    }

    /// The part of the items or batches that have ended, and how many there are, once that is known.
    fileprivate var share: (fraction: Double, unitCount: Int64)? {
        lock.withLock {
            guard let unitCount else { return nil }
            // What never began is over, too.
            let endedCount = stage == .finished ? unitCount : driver?.endedCount ?? 0
            return (Double(endedCount) / Double(unitCount), Int64(unitCount))
        }
    }
}

/// What all copies of the completion share that a type's own implementation is given. It goes with the last of them.
private final class RunCompletion<Item: Sendable>: @unchecked Sendable {
    private let run: CollectionRun<Item>
    /// Written by the thread that holds a reference, and read by the one that releases the last one.
    var isLossExpected = false

    init(_ run: CollectionRun<Item>) {
        self.run = run
    }

    deinit {
        if !isLossExpected { run.completionWasLost() }
    }

    /// The completion.
    @Sendable func end(_ slots: [(any Error)?]) {
        run.finish(slots: slots)
    }
}

/// The items or batches of a ``CollectionRun``, as its children. They are no operations, so all that is known of them is
/// how many have ended.
private final class CollectionChildren<Item: Sendable>: ChildGroup, @unchecked Sendable {
    /// Set before the run can be used.
    fileprivate weak var run: CollectionRun<Item>?

    var operation: AsyncOperation? { run }
    var unitCount: Int64 { run?.share?.unitCount ?? -1 }
    var fraction: Double { run?.share?.fraction ?? 0 }
    var weightedUnits: OperationProgress.Units? { nil }
    var progressDescription: String? { nil }

    func problem(of composite: AsyncOperation) -> (any Error)? { nil }
    func start() { run?.startItems() }
    func cancelAll(_ list: inout Trampoline) { run?.cancelItems() }
    func stopStarting() -> [Operation] { [] }
    func drain() { run?.drainItems() }
    func startReportingProgress() -> [Operation] {
        run?.progressObserved()
        return []
    }

    // A run describes itself as a leaf does.
    func operations(atMost limit: Int) -> [Operation]? { [] }
    func dependencies(of composite: AsyncOperation, recording: Bool) -> CompositeDependencies? { nil }
    func snapshot(atMost count: Int) -> ChildSnapshot? { nil }
    func childWasCancelled(_ child: Operation) {}
    func childProgressed(_ child: AsyncOperation, to fraction: Double) -> CompositeFraction? { nil }
}
