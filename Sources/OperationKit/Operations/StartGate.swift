/// Something that an operation passes between `start()` and `main()`.
///
/// An operation passes its gates one after the other, in their order. Meanwhile it is executing. A gate that opens immediately costs no
/// task and no other thread; where one takes time, no thread waits.
///
/// ```
/// enter ──true──▶ passed               on the thread that starts the operation
///   └──false──▶ wait ──gateOpened()──▶ enter ──▶ …       on a thread of a dispatch queue
/// ```
protocol StartGate: Sendable {
    /// Where the gate is among the others. Those with the same order are passed in the order of their addition.
    var order: GateOrder { get }

    /// Asks whether the operation may pass. Called by one thread at a time, with nothing locked, on a thread that the gate may block:
    /// once when it is the gate's turn, and again after each `gateOpened()`.
    ///
    /// It must not hold what the operation depends on: that would be freed by nested calls.
    ///
    /// - Parameter operation: The operation.
    /// - Returns: Whether it may pass. If not, ``wait(_:)`` follows.
    /// - Throws: What the operation ends with instead.
    func enter(_ operation: AsyncOperation) throws -> Bool

    /// Begins the wait, after observers were told. Called with nothing locked, on the thread that called ``enter(_:)``. The gate calls
    /// `AsyncOperation.gateOpened()` once, on any thread, which may be before this returns. ``withdraw()`` may have been called.
    func wait(_ operation: AsyncOperation)

    /// Gives up, because the operation ends without its `main()`. Called at most once, with nothing locked, on the thread that ends the
    /// operation, for the first gate that has not been passed. Another thread may be inside the other methods.
    ///
    /// Not called when an operation that waits is freed: the gate is released then.
    func withdraw()

    /// What the operation waits for, for its description and its observers, such as “waiting for access”. Called with nothing locked,
    /// on any thread. It is asked of each operation that waits, so it takes the same time however many wait.
    var waitDescription: String? { get }
}

extension StartGate {
    func wait(_ operation: AsyncOperation) {}
    func withdraw() {}
    var waitDescription: String? { nil }
}

/// Where a gate is among others.
enum GateOrder: Comparable {
    /// Values are handed over, and the success of what the operation depends on is checked.
    case first
    /// What the operation needs is there.
    case conditions, resources
    /// What the gates needed is released.
    case last
}

/// What an operation got from a gate, and has until its end.
protocol StartLease: AnyObject, Sendable {
    /// `main()` is called next. Called once, with nothing locked, when that was decided.
    func workBegins()

    /// The outcome stands, and nothing of the work is left. Called once, with nothing locked, before `isFinished` becomes true.
    func workEnded(of operation: AsyncOperation, error: (any Error)?)

    /// Releases all. Called once, in the step that makes `isFinished` true: with the operation's lock held. On Linux a queue that
    /// finds an operation finished when its `start()` returns begins the next one, whether or not the end has been announced.
    ///
    /// - Returns: Those who get it. The caller notifies them after unlocking, by ``granted()``.
    func release() -> [any StartLease]

    /// What the operation waits for was released by another one. Called with nothing locked.
    func granted()

    /// An operation around this one's has begun to hold something, or this one's has come inside others while it waits. Called
    /// with nothing locked, any number of times.
    func surroundingsChanged(of operation: AsyncOperation)
}

/// A gate that takes no time.
struct StartHandler: StartGate {
    let order: GateOrder
    let body: @Sendable (AsyncOperation) throws -> Void

    func enter(_ operation: AsyncOperation) throws -> Bool {
        try body(operation)
        return true
    }
}

/// The gates of one operation that have not been passed, and what they are set to. The operation's lock guards them.
final class StartGates {
    /// How long the work may take.
    var timeout: Duration?
    /// What ends the work when it has taken too long, while this is held.
    var deadline: AnyObject?
    /// What the time is measured with; `nil` for the default.
    var clock: Reference<any Clock<Duration>>?
    /// What the operation got from a gate, from its request on.
    var lease: (any StartLease)?
    /// An operation that only this one waits for, in a gate or for an attempt.
    var helper: AsyncOperation?
    /// The operation that waits for this one as its helper.
    weak var waiter: AsyncOperation?
    /// Whether something inside the operation has started before it was put there.
    var hasStartedParts = false
    /// The last one is passed first, so that each can be released when it has been passed.
    private var remaining: [any StartGate] = []

    /// The gate that is to be passed.
    var current: (any StartGate)? { remaining.last }

    /// A gate is added, after those of the same and of earlier orders.
    func add(_ gate: some StartGate) {
        let order = gate.order
        let index = remaining.firstIndex { $0.order <= order } ?? remaining.endIndex
        remaining.insert(gate, at: index)
    }

    /// A gate takes the place of the one of its order, if there is one.
    ///
    /// - Returns: The one that was replaced, for the caller to release after unlocking.
    func set(_ gate: some StartGate) -> (any StartGate)? {
        guard let index = remaining.firstIndex(where: { $0.order == gate.order }) else {
            add(gate)
            return nil
        }
        return exchange(&remaining[index], with: gate)
    }

    /// The gate of an order that has only one.
    subscript(order: GateOrder) -> (any StartGate)? {
        remaining.first { $0.order == order }
    }

    /// The current gate has been passed.
    ///
    /// - Returns: The gate, for the caller to release after unlocking.
    func passed() -> (any StartGate)? {
        let passed = remaining.popLast()
        // Its memory is not needed any more.
        if remaining.isEmpty { remaining = [] }
        return passed
    }

    /// Removes all that have not been passed.
    ///
    /// - Returns: The gates, the current one last, for the caller to release after unlocking.
    func removeAll() -> [any StartGate] {
        exchange(&remaining, with: [])
    }
}
