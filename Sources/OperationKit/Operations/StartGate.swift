import Dispatch
import Foundation

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

    /// What the operation waits for, such as “waiting for access”. Called with nothing locked, on any thread. It is asked of each operation
    /// that waits, so it takes the same time however many wait.
    ///
    /// - Parameter namesHolders: Whether it says what has that now: for descriptions. Observers are told what all that wait for the same
    ///   have in common.
    /// - Returns: The description; `nil` for nothing.
    func waitDescription(namesHolders: Bool) -> String?
}

extension StartGate {
    func wait(_ operation: AsyncOperation) {}
    func withdraw() {}
    func waitDescription(namesHolders: Bool) -> String? { nil }
}

/// Where a gate is among others.
enum GateOrder: Comparable {
    /// Values are handed over, and the success of what the operation depends on is checked.
    case first
    /// What the operation needs is there.
    case checks, leases
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
    /// Whether something inside the operation has started before it was put there.
    var hasStartedParts = false
    /// Begins what limits the time between `main()` and the end of the work. Called once, with nothing locked, when all
    /// gates have been passed.
    var beginLimit: (@Sendable (AsyncOperation) -> AnyObject?)?
    /// What that has returned, held until the work has ended.
    var limit: AnyObject?
    /// What the time is measured with; `nil` for the default.
    var clock: Reference<any Clock<Duration>>?
    /// What the operation got from a gate, from its request on.
    var lease: (any StartLease)?
    /// An operation that only this one waits for, in a gate or for an attempt.
    var helper: AsyncOperation?
    /// The operation that waits for this one as its helper.
    weak var waiter: AsyncOperation?
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

    /// A gate takes the place of the one of its type, if there is one.
    ///
    /// - Returns: The one that was replaced, for the caller to release after unlocking.
    func replace<Gate: StartGate>(_ make: (_ current: Gate?) -> Gate) -> (any StartGate)? {
        guard let index = remaining.firstIndex(where: { $0 is Gate }) else {
            add(make(nil))
            return nil
        }
        return exchange(&remaining[index], with: make(remaining[index] as? Gate))
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

// What is done between `start()` and `main()`.
extension AsyncOperation {
    /// Adds a gate. Does nothing once the operation has started.
    ///
    /// - Returns: Whether the operation has not started, so that it passes the gate.
    @discardableResult
    func addGate(_ gate: some StartGate) -> Bool {
        withState { state in
            guard state.lifecycle.isPending else { return false }
            state.requiredGates().add(gate)
            return true
        }
    }

    /// Adds a closure that is called with the operation right before its `main()`. Does nothing once the operation has
    /// started.
    ///
    /// - Parameters:
    ///   - order: When it is called.
    ///   - body: What is called. It must not hold the operation's dependencies: a chain of such closures would be freed by
    ///     nested calls. If it throws, the operation ends with the error, and `main()` is not called.
    /// - Returns: Whether the operation has not started, so that the closure will be called.
    @discardableResult
    func addStartHandler(
        _ order: GateOrder = .first, _ body: @escaping @Sendable (AsyncOperation) throws -> Void
    ) -> Bool {
        addGate(StartHandler(order: order, body: body))
    }

    /// Passes the gates from the current one on, until one of them takes time, or the operation ends. After the last one, it is
    /// decided whether `main()` is called.
    ///
    /// - Returns: What to do next, if anything.
    func passGates() -> Lifecycle.Action? {
        while let gate = withState({ $0.lifecycle.isPassingGates ? $0.gates?.current : nil }) {
            do {
                if try !gate.enter(self) { return wait(for: gate) }
                // Released after unlocking; its deinitializer may run arbitrary code.
                _ = withState { $0.gates?.passed() }
            } catch {
                finish(withError: error)
            }
        }
        if withState({ $0.lifecycle.isPassingGates && $0.gates?.lease != nil }), let startProblem {
            finish(withError: startProblem)
        }
        let limit = withState { $0.lifecycle.isPassingGates ? $0.gates?.beginLimit : nil }?(self)
        announceMain(hasGates: true)
        // Observers may have ended the operation. From here to `main()`, no code of users is called.
        let (action, lease) = withState { state in
            let action = state.lifecycle.gatesPassed()
            let gates = action == .runMain ? state.gates : nil
            gates?.limit = limit
            return (action, gates?.lease)
        }
        lease?.workBegins()
        return action
    }

    /// Leaves the operation to a gate that takes time.
    ///
    /// - Returns: What to do next, if the operation ends instead.
    private func wait(for gate: any StartGate) -> Lifecycle.Action? {
        let reason = ObserverList.isObserving ? gate.waitDescription(namesHolders: false) : nil
        let (isWaiting, action, event) = withObservers { state, observers -> (Bool, Lifecycle.Action?, EventQueue?) in
            let action = state.lifecycle.gateClosed()
            guard state.lifecycle.isWaiting else { return (false, action, nil) }
            return (true, action, reason.flatMap { state.note(.waiting(for: $0), observers) })
        }
        send(event)
        if isWaiting { gate.wait(self) }
        return action
    }

    /// Asks the gate again for which the operation waits. Called on any thread, with nothing locked. Does nothing if the operation
    /// has its outcome already.
    ///
    /// That, and all that follows, is done on a thread of a dispatch queue: the one that calls this may belong to another operation,
    /// or be one that code of users must not block.
    func gateOpened() {
        DispatchQueue.global().performAsync(qos: qualityOfService.equivalents.dispatch) {
            // Not if the operation has been cancelled or given an outcome meanwhile.
            if self.withState({ $0.lifecycle.gateOpened() }) { self.perform(self.passGates()) }
        }
    }

    /// Gives up the gates that have not been passed, and what an attempt requires. The operation ends.
    func withdrawGates() {
        // Released after unlocking; their deinitializers may run arbitrary code.
        let (remaining, helper) = withState { ($0.gates?.removeAll(), $0.gates?.helper) }
        remaining?.last?.withdraw()
        // That of an attempt, as users don't know of it; the gate ends what a condition runs. Where the attempt has not begun, it ends as
        // cancelled, which is not tried again.
        if let helper, helper.withState(\.isHidden) {
            helper.finish(withError: helper.hasReachedMain ? error : CancellationError())
        }
    }

    /// Takes what the operation got from a gate, once nothing of its work is left. Its time ends.
    func takeLease(error: (any Error)?) -> (any StartLease)? {
        // The limit is released after unlocking.
        let (lease, _) = withState { ($0.gates?.lease.take(), $0.gates?.limit.take()) }
        lease?.workEnded(of: self, error: error)
        return lease
    }
}

// MARK: - Surroundings

extension AsyncOperation {
    /// The operations that end only after this one, the nearest first: the composites around it, and the operation that it helps, with
    /// what is around that.
    var surroundingOperations: some Sequence<AsyncOperation> {
        sequence(first: self) { operation in
            let (parent, waiter) = operation.withState { ($0.parent, $0.gates?.waiter) }
            return parent?.operation ?? waiter
        }.dropFirst()
    }

    /// Makes another operation a helper: only this one waits for it. Pass `nil` when it has ended.
    ///
    /// - Returns: Whether it has not started, and helps no other operation. If not, nothing changes.
    @discardableResult
    func setHelper(_ helper: AsyncOperation?) -> Bool {
        // The waiter is released after unlocking.
        let use = helper?.withState { state -> (isNew: Bool, waiter: AsyncOperation?) in
            let waiter = state.gates?.waiter
            let isNew = state.lifecycle.isPending && waiter == nil
            if isNew { state.requiredGates().waiter = self }
            return (isNew, waiter)
        }
        if use?.isNew == false { return false }
        let former = withState { exchange(&$0.requiredGates().helper, with: helper) }
        former?.withState { $0.gates?.waiter = nil }
        return true
    }

    /// The operation was put inside others after it, or something inside it, has started: what it waits for may depend on
    /// these now.
    ///
    /// Complexity: linear in what is inside the operation.
    func cameInsideLate() {
        partHasStarted()
        surroundingsChanged()
    }

    /// Tells those around the operation that something inside them has started.
    func partHasStarted() {
        for composite in surroundingOperations {
            composite.withState { $0.requiredGates().hasStartedParts = true }
        }
    }

    /// Tells the operation, and all that is inside it, that the operations around them have changed.
    func surroundingsChanged(includingSelf: Bool = true) {
        var open: [AsyncOperation] = [self]
        while let operation = open.popLast() {
            let (lease, helper) = operation.withState { ($0.gates?.lease, $0.gates?.helper) }
            if includingSelf || operation !== self { lease?.surroundingsChanged(of: operation) }
            if let helper { open.append(helper) }
            open += operation.ownChildren?.operations(atMost: .max)?.compactMap { $0 as? AsyncOperation } ?? []
        }
    }
}
