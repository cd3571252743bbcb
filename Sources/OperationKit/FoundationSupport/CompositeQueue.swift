import Foundation

/// The private queue of a composite, on which its children run.
///
/// Code inside a child finds it as `OperationQueue.current`, and what it does to that queue concerns only operations that it
/// adds itself, its *guests*. These don't belong to the composite: they run on a queue beside this one, so they take no child's
/// place, and suspending, limiting or filling the current queue holds up no child. What can be set can be read back, and
/// waiting for the queue waits for the guests. Cancelling its operations cancels those children that are on the queue at
/// that moment, too.
///
/// `operations` and `operationCount` answer for what starts the children: Foundation declares both in an extension on Linux,
/// where they cannot be overridden. Inside the library, ``Foundation/OperationQueue/addedOperations`` stands for them.
///
/// There is an exception on Apple platforms, where it is not documented which method of a queue calls which:
/// operations that are added with `addOperations(_:waitUntilFinished:)` are no guests. They run among the children,
/// and take places of theirs.
class CompositeQueue: PrivateQueue, @unchecked Sendable {
    /// Guards the creation of the queue for the guests. Not `Void`: Thread Sanitizer takes an access to a value that has no
    /// size for one to the object around it.
    private static let creation = Locked(false)
    /// The queue for the guests. Created when it is needed.
    private var guests: OperationQueue?
    /// Whether it has never had a quality of service of its own: on Linux, it keeps the one with which it starts its first operation.
    private var isReusable = true

    private var guestQueue: OperationQueue {
        CompositeQueue.creation.withLock { _ in
            if let guests { return guests }
            let queue = OperationQueue()
            queue.name = name
            queue.qualityOfService = super.qualityOfService
            guests = queue
            return queue
        }
    }

    /// The queue for the guests, if it was needed.
    private var guestQueueIfCreated: OperationQueue? {
        CompositeQueue.creation.withLock { _ in guests }
    }

    fileprivate var guestOperations: [Operation] { guestQueueIfCreated?.operations ?? [] }

    // MARK: - Creating and reusing

    /// Queues of composites that are gone, some of which may still be returning from their last child. Creating a queue takes
    /// longer than all else that a small composite does.
    private static let retired = Locked<[CompositeQueue]>([])
    private static let mostRetired = 16

    /// Returns a queue that nothing else refers to.
    static func make() -> CompositeQueue {
        retired.withLock { retired in
            // Code that has kept one may have given it guests meanwhile.
            retired.indices.first {
                isKnownUniquelyReferenced(&retired[$0]) && retired[$0].guestQueueIfCreated == nil
            }.map { retired.remove(at: $0) }
        } ?? CompositeQueue()
    }

    /// Keeps the queue for another composite: none of its children is on it any more. It is given away only when nothing
    /// refers to it, code that has kept `OperationQueue.current` for one. On Apple platforms that can't be known.
    func retire() {
        #if !canImport(ObjectiveC)
        guard type(of: self) == CompositeQueue.self, isReusable else { return }
        _ = CompositeQueue.retired.withLock { retired in
            retired.append(self)
            return retired.count > CompositeQueue.mostRetired ? retired.removeFirst() : nil
        }
        #endif
    }

    // MARK: - For the composite

    /// Adds a child, or an operation that starts children.
    func addChild(_ operation: Operation) {
        super.addOperation(operation)
    }

    /// How many children or workers may run at the same time, and whether any may start.
    final var childSettings: (limit: Int, isSuspended: Bool) {
        get { (super.maxConcurrentOperationCount, super.isSuspended) }
        set {
            // A higher limit starts what waits.
            if newValue.isSuspended { super.isSuspended = true }
            super.maxConcurrentOperationCount = newValue.limit
            super.isSuspended = newValue.isSuspended
        }
    }

    /// The quality of service with which children start.
    final var childQualityOfService: QualityOfService {
        get { super.qualityOfService }
        set {
            super.qualityOfService = newValue
            CompositeQueue.creation.withLock { _ in isReusable = false }
        }
    }

    // MARK: - For others

    override func addOperation(_ operation: Operation) {
        guestQueue.addOperation(operation)
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
        guestQueue.addOperation(block)
    }

    // Foundation's `addOperation(_:)` may call it on Apple platforms: children would leave the queue.
    #if !canImport(ObjectiveC)
    override func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
        guestQueue.addOperations(operations, waitUntilFinished: wait)
    }
    #endif

    override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        guestQueue.addBarrierBlock(barrier)
    }

    override var isSuspended: Bool {
        get { guestQueueIfCreated?.isSuspended ?? false }
        set { guestQueue.isSuspended = newValue }
    }

    override var maxConcurrentOperationCount: Int {
        get { guestQueueIfCreated?.maxConcurrentOperationCount ?? OperationQueue.defaultMaxConcurrentOperationCount }
        set { guestQueue.maxConcurrentOperationCount = newValue }
    }

    override var qualityOfService: QualityOfService {
        get { guestQueueIfCreated?.qualityOfService ?? super.qualityOfService }
        set { guestQueue.qualityOfService = newValue }
    }

    override var underlyingQueue: DispatchQueue? {
        get { unsafe guestQueueIfCreated?.underlyingQueue }
        set { unsafe guestQueue.underlyingQueue = newValue }
    }

    override var progress: Progress { guestQueue.progress }

    override func cancelAllOperations() {
        super.cancelAllOperations()
        guestQueueIfCreated?.cancelAllOperations()
    }

    /// A child that waited for this queue would wait for itself.
    override func waitUntilAllOperationsAreFinished() {
        guestQueueIfCreated?.waitUntilAllOperationsAreFinished()
    }
}

extension OperationQueue {
    /// The operations that code outside the queue has added to it, and that have not finished: its `operations`, except for the
    /// private queue of a composite.
    var addedOperations: [Operation] {
        (self as? CompositeQueue)?.guestOperations ?? operations
    }

    /// All operations that are on the queue, the children on the private queue of a composite included.
    var heldOperations: [Operation] {
        operations + ((self as? CompositeQueue)?.guestOperations ?? [])
    }
}

/// A queue of the library, which knows what is on it: no search has to look there for an operation.
class PrivateQueue: OperationQueue, @unchecked Sendable {}
