import Foundation

/// The private queue of a composite, on which its children run.
///
/// Code inside a child finds it as `OperationQueue.current`, and what it does to that queue concerns only operations that it
/// adds itself. These don't belong to the composite: they run on a queue beside this one, so they take no child's place, and
/// suspending, limiting or filling the current queue holds up no child. Cancelling its operations cancels those children that
/// are on the queue at that moment, too.
class CompositeQueue: OperationQueue, @unchecked Sendable {
    private static let creation = Locked(())
    /// The queue for operations that were not added by the composite. Created when it is needed.
    private var guests: OperationQueue?

    private var guestQueue: OperationQueue {
        CompositeQueue.creation.withLock { _ in
            if let guests { return guests }
            let queue = OperationQueue()
            queue.name = name
            queue.qualityOfService = qualityOfService
            guests = queue
            return queue
        }
    }

    // MARK: - For the composite

    /// Adds a child, or an operation that starts children.
    func addChild(_ operation: Operation) {
        super.addOperation(operation)
    }

    /// Sets how many operations may run at the same time, and whether any may start.
    final func set(limit: Int, isSuspended: Bool) {
        super.maxConcurrentOperationCount = limit
        super.isSuspended = isSuspended
    }

    // MARK: - For others

    override func addOperation(_ operation: Operation) {
        guestQueue.addOperation(operation)
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
        guestQueue.addOperation(block)
    }

    // Not overridden on Apple platforms, where Foundation's `addOperation(_:)` may call it: children would leave the
    // queue.
    #if !canImport(ObjectiveC)
    override func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
        guestQueue.addOperations(operations, waitUntilFinished: wait)
    }
    #endif

    override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        guestQueue.addBarrierBlock(barrier)
    }

    override var isSuspended: Bool {
        get { super.isSuspended }
        set { guestQueue.isSuspended = newValue }
    }

    override var maxConcurrentOperationCount: Int {
        get { super.maxConcurrentOperationCount }
        set { guestQueue.maxConcurrentOperationCount = newValue }
    }

    override func cancelAllOperations() {
        super.cancelAllOperations()
        CompositeQueue.creation.withLock { _ in guests }?.cancelAllOperations()
    }
}
