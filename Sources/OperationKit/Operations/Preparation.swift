/// One thing that has to be done between `start()` and `main()` of an operation.
///
/// The preparations of an operation are made one after the other, in the order of their stages, and within a stage in the
/// order in which they were added. Meanwhile the operation is executing. No thread waits for one that takes time.
protocol Preparation: Sendable {
    /// When it is its turn.
    var stage: PreparationStage { get }

    /// Makes the preparation, or begins it. Called at most once, by the operation, with nothing locked: on the thread that
    /// starts the operation, or on the one that goes on after an earlier preparation.
    ///
    /// It must not hold what the operation depends on: that would be freed by nested calls.
    ///
    /// - Parameter operation: The operation that is prepared.
    /// - Returns: Whether it has been made. If not, it takes time: it calls `AsyncOperation.preparationEnded(withError:)` once
    ///   it has been made, which may be before this returns. If the operation ends before, ``withdraw()`` is called.
    /// - Throws: What the operation ends with instead.
    func prepare(_ operation: AsyncOperation) throws -> Bool

    /// Gives up the preparation, because the operation ends without its `main()`. Called at most once, with nothing locked, on
    /// the thread that ends the operation, for the first preparation that has not been made, begun or not. Another thread may
    /// be inside ``prepare(_:)``.
    ///
    /// Not called when an operation that is being prepared is freed: the preparation is released then.
    func withdraw()

    /// What the operation does while the preparation takes time, for its description, such as "waiting for access". Called with
    /// nothing locked, on any thread.
    var waitDescription: String? { get }

    /// What the operation waits for, for its observers. Unlike the description it is asked of each operation that waits, so it takes
    /// the same time however many wait.
    var waitReason: String? { get }
}

extension Preparation {
    func withdraw() {}
    var waitDescription: String? { nil }
    var waitReason: String? { waitDescription }
}

/// What an operation holds of what it requires, until its end.
protocol HeldResources: AnyObject {
    /// The outcome stands, and nothing of the work is left. Called once, with nothing locked, before `isFinished` becomes true.
    func workEnded(of operation: AsyncOperation, error: (any Error)?)

    /// Releases all. Called once, in the step that makes `isFinished` true: with the operation's lock held. On Linux a queue that
    /// finds an operation finished when its `start()` returns begins the next one, whether or not the end has been announced.
    ///
    /// - Returns: The operations that get it. The caller lets them go on, after unlocking.
    func release() -> [AsyncOperation]
}

/// The order of preparations.
enum PreparationStage: Int, Comparable, Sendable {
    /// Values are handed over, and the success of what the operation depends on is checked.
    case binding
    /// Conditions are evaluated.
    case condition
    /// Circuit breakers are asked, and resources are requested.
    case requirement
    /// What was granted is put to use.
    case admission
    /// The time begins in which the work has to end.
    case timeout
    /// What the preparations needed is released.
    case release

    static func < (earlier: Self, later: Self) -> Bool { earlier.rawValue < later.rawValue }
}

/// A preparation that takes no time.
struct StartHandler: Preparation {
    let stage: PreparationStage
    let body: @Sendable (AsyncOperation) throws -> Void

    func prepare(_ operation: AsyncOperation) throws -> Bool {
        try body(operation)
        return true
    }
}
