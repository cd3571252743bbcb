import Foundation

/// The steps of a macro, and how the user counts them.
///
/// The steps are the children of one scheduler, which moves from macro to macro as the chain grows. So nothing is copied,
/// and a step is found to belong to the chain whatever its length.
final class StepList: @unchecked Sendable {
    /// Makes an error from the name of the composite.
    typealias Refusal = @Sendable (String) -> any Error

    let children = ChildScheduler(
        limit: OperationQueue.defaultMaxConcurrentOperationCount, failurePolicy: .cancelRemaining,
        countsCancellations: true, unit: "steps")

    private let lock = NSLock()
    /// The places of those steps that the user knows of, once there are others; negative for the others.
    private var places: [Int] = []
    private var count = 0
    private var hiddenCount = 0
    private var refusal: Refusal?

    /// Appends a step that has been claimed.
    ///
    /// - Parameters:
    ///   - operation: The step.
    ///   - weight: Its share in the progress.
    ///   - isHidden: Whether the user does not know of it.
    func append(_ operation: AsyncOperation, weight: Int64 = 1, isHidden: Bool = false) {
        lock.withLock {
            if isHidden, places.isEmpty { places = Array(0..<count) }
            if isHidden || !places.isEmpty { places.append(isHidden ? -1 : count) }
            if isHidden { hiddenCount += 1 } else { count += 1 }
        }
        children.addAdopted(operation, weight: weight)
    }

    /// Makes the operation a step of this list and of no other.
    func claim(_ operation: AsyncOperation) -> Bool {
        operation.setParent(children, from: nil)
    }

    /// Whether the operation is a step of this list.
    func contains(_ operation: AsyncOperation) -> Bool {
        operation.setParent(children, from: children)
    }

    /// The steps are not to run. The first reason counts.
    func refuse(_ refusal: @escaping Refusal) {
        lock.withLock { if self.refusal == nil { self.refusal = refusal } }
    }

    /// Called before the steps run, or end without running, as the children of a composite. Ends it if they must not run.
    func prepare(for composite: AsyncOperation) {
        if let refusal = lock.withLock({ refusal }) { composite.finish(withError: refusal(composite.displayName)) }
        children.queue.name = composite.displayName
        children.queue.qualityOfService = composite.qualityOfService
    }

    /// Says of steps that have not begun only how many they are.
    func describe(_ snapshot: inout ChildSnapshot) {
        if snapshot.blockedReason == .notBegun { snapshot.summary = ["\(lock.withLock { count + hiddenCount }) steps"] }
    }

    /// The failure as the user counts steps.
    func placed(_ failure: SuboperationError) -> SuboperationError {
        let (place, count) = lock.withLock { (places.isEmpty ? failure.index : places[failure.index], self.count) }
        return SuboperationError(name: failure.name, index: place, error: failure.error, siblingCount: count)
    }
}

/// Where a chain ends for now: its last step, and what comes out of it.
struct OutputSource<Output: Sendable>: Sendable {
    let operation: AsyncOperation
    /// Does not hold the operation.
    let output: @Sendable () -> Output?

    init<Input>(_ operation: IOOperation<Input, Output>) {
        self.operation = operation
        output = { [weak operation] in operation?.output }
    }
}

/// Hands the input to the first step. A struct, because a mere closure would be wrapped in another one each time that it
/// is handed from macro to macro.
struct InputSink<Input: Sendable>: Sendable {
    let receive: @Sendable (Input) -> Void
}

extension IOOperation {
    /// Makes the operation run after others, and take its input from steps before.
    ///
    /// The dependencies are cut when they have served, also for what else the step takes from those before it: otherwise
    /// the last step of a chain would hold all of it.
    final func takeInput(after sources: [AsyncOperation], input: @escaping @Sendable () -> Input?) {
        let references = sources.map { source in
            addDependency(source)
            return WeakReference(source)
        }
        addStartHandler { [weak self] target in
            let sources = references.compactMap(\.operation)
            let value = input()
            for source in sources { if let error = source.error { throw error } }
            guard let value else { throw CancellationError() }
            self?.input = value
        }
        addStartHandler(isLast: true) { target in
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
