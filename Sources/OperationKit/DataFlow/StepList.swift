import Foundation

/// The steps of a macro: collected first, then handed to a scheduler that runs them.
///
/// The steps belong to the list, which moves from macro to macro as the chain grows. So nothing is copied, and a step is
/// found to belong to the chain whatever its length.
final class StepList: @unchecked Sendable {
    /// Makes an error from the name of the composite.
    typealias Refusal = @Sendable (String) -> any Error

    private let lock = NSLock()
    private var operations: [(operation: AsyncOperation, weight: Int64)] = []
    /// The places of those steps that the user knows of, once there are others; negative for the others.
    private var places: [Int] = []
    private var count = 0
    private var refusal: Refusal?
    private var isCancelled = false
    private var isProgressWanted = false
    private var scheduler: ChildScheduler?
    private weak var composite: (any Composite)?

    /// Appends a step that has been claimed.
    ///
    /// - Parameters:
    ///   - weight: Its share in the progress.
    ///   - isHidden: Whether the user does not know of it.
    func append(_ operation: AsyncOperation, weight: Int64 = 1, isHidden: Bool = false) {
        let isCancelled = lock.withLock {
            operations.append((operation, weight))
            if isHidden, places.isEmpty { places = Array(0..<count) }
            if isHidden || !places.isEmpty { places.append(isHidden ? -1 : count) }
            if !isHidden { count += 1 }
            return self.isCancelled
        }
        if isCancelled { operation.cancel() }
    }

    /// Makes these the steps of a composite, and not of the one before.
    func move(to composite: any Composite) {
        let previous = lock.withLock {
            defer { self.composite = composite }
            return self.composite
        }
        if previous?.isAwaitedByComposite == true { composite.noteAwaitedByComposite() }
    }

    /// Makes the operation a step of this list and of no other.
    func claim(_ operation: AsyncOperation) -> Bool {
        operation.setParent(self, from: nil)
    }

    /// Whether the operation is a step of this list.
    func contains(_ operation: AsyncOperation) -> Bool {
        operation.setParent(self, from: self)
    }

    /// The steps are not to run. The first reason counts.
    func refuse(_ refusal: @escaping Refusal) {
        lock.withLock { if self.refusal == nil { self.refusal = refusal } }
    }

    /// Cancels all steps, and those that are appended from now on.
    func cancelAll() {
        let (operations, scheduler) = lock.withLock {
            isCancelled = true
            return (self.operations, self.scheduler)
        }
        if let scheduler { return scheduler.cancelAll() }
        for (operation, _) in operations { operation.cancel() }
    }

    /// Somebody wants to know the progress of the steps.
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

    /// Runs the steps, and reports to the composite when all of them have ended.
    func run(for composite: any Composite) {
        let (operations, refusal) = lock.withLock { (self.operations, self.refusal) }
        if let refusal { composite.finish(withError: refusal(composite.displayName)) }
        let scheduler = ChildScheduler(
            limit: OperationQueue.defaultMaxConcurrentOperationCount, failurePolicy: .cancelRemaining,
            countsCancellations: true)
        scheduler.queue.name = composite.displayName
        scheduler.queue.qualityOfService = composite.qualityOfService
        for (operation, weight) in operations { scheduler.addClaimed(operation, weight: weight) }
        let (isCancelled, isProgressWanted) = lock.withLock {
            self.scheduler = scheduler
            self.operations = []
            return (self.isCancelled, self.isProgressWanted)
        }
        if isCancelled { scheduler.cancelAll() }
        if isProgressWanted { scheduler.startReportingProgress() }
        scheduler.run(for: composite)
    }

    /// The steps that have not ended, as they are now.
    func snapshot(atMost limit: Int) -> ChildSnapshot {
        let (operations, scheduler) = lock.withLock { (self.operations, self.scheduler) }
        if let scheduler { return scheduler.snapshot(atMost: limit, unit: "steps") }
        return ChildSnapshot(notBegun: operations.map(\.operation), atMost: limit, unit: "steps")
    }

    /// The failure as the user counts steps.
    func placed(_ failure: SuboperationError) -> SuboperationError {
        let (place, count) = lock.withLock { (places.isEmpty ? failure.index : places[failure.index], self.count) }
        return SuboperationError(name: failure.name, index: place, error: failure.error, siblingCount: count)
    }
}

extension StepList: ChildGroup {
    var operation: AsyncOperation? {
        lock.withLock { composite }
    }

    func childWasCancelled(_ child: Operation) {
        lock.withLock({ scheduler })?.childWasCancelled(child)
    }

    func childProgressed(_ child: AsyncOperation, to fraction: Double) {
        lock.withLock({ scheduler })?.childProgressed(child, to: fraction)
    }
}

/// Where a chain ends for now: its last step, and what comes out of it.
struct Tail<Output: Sendable>: Sendable {
    let operation: AsyncOperation
    /// Does not hold the operation.
    let output: @Sendable () -> Output?

    init<Input>(_ operation: IOOperation<Input, Output>) {
        self.operation = operation
        output = { [weak operation] in operation?.output }
    }
}

extension IOOperation {
    /// Has the operation run after others, and get its input from steps before.
    ///
    /// The dependencies are cut when they have served, also for what else the step takes from those before it: otherwise
    /// the last step of a chain would hold all of it.
    final func follow(_ sources: [AsyncOperation], input: @escaping @Sendable () -> Input?) {
        let references = sources.map { source in
            addDependency(source)
            return WeakReference(source)
        }
        addPreparation { [weak self] target in
            let sources = references.compactMap(\.operation)
            let value = input()
            for source in sources { if let error = source.error { throw error } }
            guard let value else { throw CancellationError() }
            self?.input = value
        }
        addPreparation(isLast: true) { target in
            for source in references.compactMap(\.operation) { target.removeDependency(source) }
        }
    }
}

struct WeakReference: @unchecked Sendable {
    private(set) weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
        self.operation = operation
    }
}
