import Foundation

/// The items or batches of a ``CollectionRun``, as its children. They are no operations, so all that is known of them
/// is how many have ended.
final class CollectionChildren: ChildGroup, @unchecked Sendable {
    /// What the operation does. The closures refer to it unowned.
    struct Handlers: Sendable {
        let start: @Sendable () -> Void
        let cancelAll: @Sendable () -> Void
        let drain: @Sendable () -> Void
        /// How many items or batches have ended, and how many there are, once that is known.
        let count: @Sendable () -> (ended: Int, total: Int?)
        let startReportingProgress: @Sendable () -> Void
        let outcomeWasDelivered: @Sendable () -> Void
    }

    // Both are set before the operation can be used.
    private weak var composite: AsyncOperation?
    private var handlers: Handlers?

    func attach(to composite: AsyncOperation, _ handlers: Handlers) {
        self.composite = composite
        self.handlers = handlers
    }

    var operation: AsyncOperation? { composite }
    var unitCount: Int64 { handlers?.count().total.map(Int64.init) ?? -1 }
    var fraction: Double {
        guard let (ended, total) = handlers?.count(), let total else { return 0 }
        return Double(ended) / Double(total)
    }
    var weightedUnits: (completed: Int64, total: Int64)? { nil }
    var progressDescription: String? { nil }

    func start() { handlers?.start() }
    func cancelAll(_ list: inout Worklist) { handlers?.cancelAll() }
    func stopStarting() -> [Operation] { [] }
    func drain() { handlers?.drain() }
    func startReportingProgress() -> [Operation] {
        handlers?.startReportingProgress()
        return []
    }
    func outcomeWasDelivered() { handlers?.outcomeWasDelivered() }

    // A run is never consumed, and describes itself as a leaf does.
    func detach() {}
    func removeAll() -> [Operation] { [] }
    func operations(atMost limit: Int) -> [Operation]? { [] }
    func recordDependencies(of composite: AsyncOperation) -> CompositeDependencies? { nil }
    func recordedDependencies(of composite: AsyncOperation) -> CompositeDependencies? { nil }
    func snapshot(atMost count: Int) -> ChildSnapshot? { nil }
    func childWasCancelled(_ child: Operation) {}
    func childProgressed(
        _ child: AsyncOperation, to fraction: Double
    ) -> (composite: AsyncOperation, fraction: Double)? { nil }
}
