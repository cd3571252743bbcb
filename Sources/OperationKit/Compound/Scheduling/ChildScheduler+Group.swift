import Foundation

/// What a composite does itself, around its children. The closures refer to the composite unowned.
struct CompositeHandlers: Sendable {
    /// Called on the thread that starts the composite. It prepares the children, and then calls ``ChildScheduler/run()``.
    let start: @Sendable () -> Void
    /// Called once with the failures that count, on the thread on which the last child finished.
    let finished: @Sendable (_ failures: [SuboperationError]) -> Void
    /// Called once, after `asyncCompletionBlock` and before the composite becomes finished.
    var outcomeWasDelivered: @Sendable () -> Void = {}
    /// Called instead of `start` if the children only have to end, on the thread that starts the composite.
    var willDrain: @Sendable () -> Void = {}
    /// Called for descriptions, on any thread, with a snapshot to be put in the words of the composite.
    var describe: @Sendable (_ snapshot: inout ChildSnapshot) -> Void = { _ in }
}

extension ChildScheduler {
    /// Makes the children those of a composite.
    func attach(to composite: AsyncOperation, _ handlers: CompositeHandlers) {
        var previous: CompositeHandlers? = handlers
        withState { state in
            state.composite = composite
            swap(&previous, &state.handlers)
        }
    }

    /// Takes the children away from their composite. They stay together, for another one to take.
    func detach() {
        withState { $0.composite = nil }
    }
}

extension ChildScheduler: ChildGroup {
    var operation: AsyncOperation? { withState { $0.composite } }

    private var handlers: CompositeHandlers? { withState { $0.handlers } }

    var unitCount: Int64 { OperationProgress.fineUnitCount }

    func start() {
        handlers?.start()
    }

    func drain() {
        cancelAll()
        handlers?.willDrain()
        run()
    }

    func outcomeWasDelivered() {
        handlers?.outcomeWasDelivered()
    }

    func snapshot(atMost count: Int) -> ChildSnapshot? {
        var snapshot = snapshot(atMost: count, unit: unit)
        handlers?.describe(&snapshot)
        return snapshot
    }

    /// The children that have not finished.
    var operations: [Operation] { withState { $0.operations } }

    var foreignDependencies: Set<ObjectIdentifier> { withState { $0.foreignDependencies } }

    func addForeignDependency(_ operation: Operation) {
        withState { _ = $0.foreignDependencies.insert(ObjectIdentifier(operation)) }
    }
}
