import Dispatch

/// Reports the end of a unit: its error, or `nil` for success. May be called on any thread, repeatedly; the first
/// report counts.
typealias UnitCompletion = @Sendable (_ error: (any Error)?) -> Void

/// What the completions of units report to.
protocol UnitOwner: AnyObject, Sendable {
    /// Ends a unit.
    ///
    /// - Parameters:
    ///   - index: The unit.
    ///   - error: Its error.
    ///   - onAcceptance: Called with a lock held, if this is the first report of the end.
    /// - Returns: Whether it is.
    @discardableResult
    func ended(_ index: Int, _ error: (any Error)?, onAcceptance: () -> Void) -> Bool

    /// Ends a unit soon, because nothing else can. Called where the last copy of its completion was released.
    func completionWasLost(_ index: Int)
}

extension UnitOwner {
    /// Ends a unit whose completion was lost.
    ///
    /// - Parameters:
    ///   - index: The unit.
    ///   - error: Its error, unless the run was cancelled.
    ///   - queue: Where it ends. The releasing thread may hold arbitrary locks.
    ///   - isCancelled: Whether the run was cancelled. Called on the queue.
    func endLostUnit(
        _ index: Int, _ error: LostFinishError, on queue: DispatchQueue, isCancelled: @escaping @Sendable () -> Bool
    ) {
        queue.performAsync {
            if isCancelled() {
                self.ended(index, CancellationError()) {}
            } else if self.ended(index, error, onAcceptance: {}) {
                ExecutionRecording.current.report(.lostFinish(error, operation: nil))
            }
        }
    }
}

/// What all copies of the completion of one unit share. It goes with the last of them.
final class UnitToken: @unchecked Sendable {
    private let owner: any UnitOwner
    private let index: Int
    /// Whether the unit was ended by this. Written with the lock of the run held, and read by the thread that releases
    /// the object last.
    private var hasEnded = false

    init(_ owner: any UnitOwner, _ index: Int) {
        self.owner = owner
        self.index = index
    }

    deinit {
        if !hasEnded { owner.completionWasLost(index) }
    }

    /// The completion.
    @Sendable func end(_ error: (any Error)?) {
        owner.ended(index, error) { hasEnded = true }
    }
}

/// Where the units of a run end whose completions were lost: one queue for all, which is created when it is needed.
struct LossQueue {
    private var queue: DispatchQueue?

    mutating func get(qos: DispatchQoS) -> DispatchQueue {
        if let queue { return queue }
        let queue = DispatchQueue.makeUnoccupied(qos: qos)
        self.queue = queue
        return queue
    }
}
