import Foundation

/// The operation queues that the library has seen at work, without keeping them alive.
///
/// Foundation does not say which queue an operation is on; only a queue says which operations are on it.
final class KnownQueues: Sendable {
    private struct Entry: Sendable {
        weak var queue: OperationQueue?
    }

    static let shared = KnownQueues()

    private let entries = Locked<[ObjectIdentifier: Entry]>([:])

    /// An operation starts on the queue, or the library adds one to it.
    func insert(_ queue: OperationQueue) {
        if queue is PrivateQueue { return }
        // Release the queues after unlocking; their deinitializers may run arbitrary code.
        let discarded = entries.withLock { entries -> [OperationQueue] in
            let id = ObjectIdentifier(queue)
            if entries[id]?.queue != nil { return [] }
            var queues: [OperationQueue] = []
            // Remove those that are gone instead of growing, if there are any.
            if entries.count == entries.capacity {
                queues = entries.values.compactMap(\.queue)
                let present = Set(queues.map { ObjectIdentifier($0) })
                entries = entries.filter { present.contains($0.key) }
            }
            entries[id] = Entry(queue: queue)
            return queues
        }
        withExtendedLifetime(discarded) {}
    }

    /// How many are in the table, those included that are gone and have not been noticed.
    var count: Int { entries.withLock(\.count) }

    /// The queue that an operation is on, if it is one of those that are known, the main queue or the current one.
    ///
    /// Complexity: linear in the operations on these queues.
    func queue(of operation: Operation) -> OperationQueue? {
        let known = entries.withLock { entries -> [OperationQueue] in
            let present = entries.compactMapValues(\.queue)
            // What is gone need not be looked at again.
            if present.count < entries.count { entries = entries.filter { present[$0.key] != nil } }
            return Array(present.values)
        }
        return ([OperationQueue.current, OperationQueue.main].compactMap { $0 } + known).first {
            $0.addedOperations.contains { $0 === operation }
        }
    }
}

extension ExecutionRecording {
    /// An operation starts on a queue, or the library adds one to it.
    func note(_ queue: OperationQueue) {
        if case .off = self { return }
        KnownQueues.shared.insert(queue)
    }
}
