import Foundation

/// The composite that children belong to, and what it does itself.
struct ParentReference {
    private(set) weak var composite: AsyncOperation?
    private(set) var handlers: CompositeHandlers?
    /// The composite, kept alive while it runs.
    private(set) var running: AsyncOperation?
    /// What the composite was made to depend on; `nil` if that is nothing, or it has started.
    private var dependencies: CompositeDependencies?

    /// - Returns: What belonged to the composite before, to be released after unlocking.
    mutating func attach(
        to composite: AsyncOperation, _ handlers: CompositeHandlers
    ) -> (CompositeHandlers?, CompositeDependencies?) {
        self.composite = composite
        return (exchange(&self.handlers, with: handlers), dependencies.take())
    }

    /// The composite is made to depend on an operation before it has started.
    mutating func recordDependencies(of composite: AsyncOperation) -> CompositeDependencies? {
        guard self.composite === composite else { return nil }
        let recorded = dependencies ?? CompositeDependencies(of: composite)
        dependencies = recorded
        return recorded
    }

    func recordedDependencies(of composite: AsyncOperation) -> CompositeDependencies? {
        self.composite === composite ? dependencies : nil
    }

    mutating func detach() {
        composite = nil
    }

    /// The composite starts its children.
    ///
    /// - Returns: The composite, and what it depended on, to be released after unlocking.
    mutating func run() -> (composite: AsyncOperation?, dependencies: CompositeDependencies?) {
        running = composite
        return (running, dependencies.take())
    }

    /// The children have ended.
    ///
    /// - Returns: The composite, which is not kept alive any more.
    mutating func finish() -> AsyncOperation? {
        running.take()
    }
}

/// What a composite does itself, around its children. The closures refer to the composite unowned.
struct CompositeHandlers: Sendable {
    /// Called on the thread that starts the composite. It prepares the children, and then calls ``ChildScheduler/run()``.
    let start: @Sendable () -> Void
    /// Called once with the failures that count, on the thread on which the last child finished.
    let finished: @Sendable (_ failures: ChildFailures, _ list: inout Trampoline) -> Void
    /// Whether the description of the progress counts the children. Not where users count them differently, as steps
    /// and jobs.
    var countsChildren = false
    /// Called once, after `asyncCompletionBlock` and before the composite becomes finished.
    var outcomeWasDelivered: @Sendable () -> Void = {}
    /// Called instead of `start` if the children only have to end, on the thread that starts the composite.
    var willDrain: @Sendable () -> Void = {}
    /// Called for descriptions, on any thread, with a snapshot to be put in the words of the composite.
    var describe: @Sendable (_ snapshot: inout ChildSnapshot) -> Void = { _ in }
}
