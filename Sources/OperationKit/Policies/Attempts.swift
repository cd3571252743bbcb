import Foundation

/// The attempts of one operation: children that a closure makes while it runs.
final class Attempts: ChildDescriber {
    /// Makes an operation with the input and the output of the composite, or of any class if both are `Void`.
    typealias Make = @Sendable (_ number: Int) throws -> AsyncOperation

    let children: ChildScheduler
    /// What users call an attempt.
    private let noun: String
    /// How many attempts there are at most, if that is known.
    private let maximum: Int?

    private struct State {
        /// The number of the attempt that was made last.
        var number = 0
        /// The time until the next one begins, during a delay.
        var remaining: (@Sendable () -> Duration)?
        var winner: ObjectIdentifier?
    }

    private let state = Locked(State())

    /// - Parameters:
    ///   - noun: What users call an attempt.
    ///   - maximum: How many there are at most.
    ///   - ledger: How attempts count in the progress. In the default the one that came farthest counts.
    init(of noun: String, maximum: Int?, ledger: ProgressLedger = ProgressLedger(ofAlternatives: true)) {
        self.noun = noun
        self.maximum = maximum.flatMap { $0 < .max ? $0 : nil }
        children = ChildScheduler(noun: "\(noun)s", body: CompositeBody())
        children.changeProgress { $0 = ledger }
    }

    /// No attempt is to be made, because the policy makes no sense.
    func refuse(_ problem: String) {
        children.refuse { RetryError.invalidPolicy(operation: $0, problem: problem) }
    }

    /// How many attempts were made.
    var count: Int { state.withLock { $0.number } }

    // MARK: - Making and waiting

    /// Makes the operation of the next attempt, which gets, where it has none, the input and a name.
    ///
    /// - Throws: The error of the closure, or one about the operation that it made. `CancellationError` if no further attempt is to
    ///   begin, because the composite was cancelled, or given an outcome.
    func next<Input, Output>(
        of composite: IOOperation<Input, Output>, input: Input?, _ make: @escaping Make
    ) async throws -> AsyncOperation {
        let number = count + 1
        try checkStopped()
        let operation = try await children.call { try make(number) }
        try check(operation, made: number, for: composite)
        do {
            try checkStopped()
        } catch {
            // It ends without having begun: callers may wait for it.
            operation.cancel()
            try await children.runChild(operation)
            throw error
        }
        if let operation = operation as? IOOperation<Input, Output>, operation.input == nil { operation.input = input }
        operation.inherit(from: composite)
        if let request = composite.requestOfAttempts { operation.require(request) }
        if operation.name == nil {
            // The end of a long name is enough: names that are made of names do not grow with the nesting.
            let name = composite.displayName
            operation.name = (name.utf8.count <= 120 ? name : "…\(name.suffix(100))") + ", \(noun) \(number)"
        }
        state.withLock { $0.number = number }
        return operation
    }

    private func check(_ operation: AsyncOperation, made number: Int, for composite: AsyncOperation) throws {
        if composite.isInside(operation) { throw composite.dependencyCycle(through: operation) }
        let parent = operation.parent
        if operation.hasBeenStarted || parent === children {
            throw RetryError.operationReused(operation: composite.displayName, attempt: number)
        }
        if parent != nil { throw composite.alreadyAdded(operation) }
    }

    /// Whether no further attempt is to begin, because the composite was cancelled.
    var isStopped: Bool { children.isStopped }

    func checkStopped() throws {
        if isStopped || winner != nil { throw CancellationError() }
    }

    /// Lets the time before the next attempt pass, in a task of the body. Descriptions say when it begins.
    func wait(_ duration: Duration, on clock: any Clock<Duration>, began: () -> Void = {}) async throws {
        delayBegan(duration, on: clock)
        defer { delayEnded() }
        try await clock.pause(for: duration, began: began)
        // The task may not know of a cancellation yet.
        try checkStopped()
    }

    func delayBegan(_ duration: Duration, on clock: any Clock<Duration>) {
        let time = TimeSource(clock)
        state.withLock { $0.remaining = { max(duration - time.now(), .zero) } }
    }

    func delayEnded() {
        // Released after unlocking: a clock may be of users' types.
        _ = state.withLock { $0.remaining.take() }
    }

    // MARK: - Attempts at the same time

    /// The one that has succeeded first, of those that are observed. It is decided when it ends, whichever thread comes
    /// first to what follows.
    var winner: ObjectIdentifier? { state.withLock { $0.winner } }

    func succeeded(_ attempt: AsyncOperation) {
        state.withLock { $0.winner = $0.winner ?? ObjectIdentifier(attempt) }
    }

    // MARK: - Descriptions

    /// Describes what the operation does: “attempt 2 of 5 begins in 1.4 s”.
    func describe(_ snapshot: inout ChildSnapshot) {
        let (number, remaining) = state.withLock { ($0.number, $0.remaining) }
        snapshot.summary = number == 0 ? [] : [text(number)]
        guard let remaining else { return }
        let next = "\(text(number + 1)) begins in \(remaining().shortText)"
        // While no attempt runs, the last one is over.
        snapshot.summary = snapshot.children.isEmpty ? [next] : snapshot.summary + [next]
    }

    private func text(_ number: Int) -> String {
        "\(noun) \(number)" + (maximum.map { " of \($0)" } ?? "")
    }
}

extension Attempts: FinishObserving {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) {
        if error == nil { succeeded(operation) }
    }
}

extension IOOperation {
    /// Makes the operation a composite of attempts, in its initializer. They may have inputs of their own, so it needs none.
    func becomeComposite(
        of attempts: Attempts, body: @escaping @Sendable (_ input: Input?) async throws -> Output
    ) {
        isInputOptional = true
        becomeComposite(
            of: attempts.children, describer: attempts,
            taking: { .some($0.input) }, body: body)
    }

    /// The result of an attempt that has finished. The success of an operation of any class is an output of type `Void`.
    func result(of attempt: AsyncOperation) -> Result<Output, any Error> {
        if let error = attempt.error { return .failure(error) }
        if let output = (attempt as? IOOperation)?.output ?? () as? Output { return .success(output) }
        return .failure(attempt.missingOutput)
    }
}

extension AsyncOperation {
    /// What each attempt of the operation requires beside its own, from `main()` on.
    var requestOfAttempts: ResourceRequest? {
        passesRequestToChildren ? resourceLease?.request : nil
    }

    /// Adds what each attempt of another operation requires.
    func require(_ request: ResourceRequest) {
        changeRequest(named: "of an attempt") { $0.add(request) }
    }

    /// Takes the clock and the priority of the operation whose attempt this one is, unless it has its own, so that it waits as that
    /// would.
    func inherit(from operation: AsyncOperation) {
        if queuePriority == .normal { queuePriority = operation.queuePriority }
        if operation.withState({ $0.gates?.clock != nil }), withState({ $0.gates?.clock == nil }) {
            clock = operation.clock
        }
    }
}

extension ResourceRequest {
    /// Requests everything for an attempt that is no operation of its own, and suspends until it is granted.
    ///
    /// Cancelling the task ends the wait with `CancellationError`.
    ///
    /// - Parameter operation: The operation whose attempt it is.
    /// - Returns: Ends what the attempt holds, with the error of the attempt, which circuit breakers count.
    /// - Throws: ``ResourceError``, ``CircuitOpenError``.
    func granted(toAttemptOf operation: AsyncOperation) async throws -> FinishHandle<Void> {
        // What requires them is an operation of its own, whose work lasts as long as the attempt.
        let continuation = Locked<CheckedContinuation<FinishHandle<Void>?, Never>?>(nil)
        let lease = AsyncBlockOperation(name: operation.displayName) { finish in
            continuation.withLock { $0.take() }?.resume(returning: finish)
        }
        lease.hideFromObservers()
        lease.require(self)
        lease.inherit(from: operation)
        operation.setHelper(lease)
        // Not before it has left its lines: the operation may end now.
        FinishObserver(lease) { [weak operation] in
            operation?.setHelper(nil)
            continuation.withLock { $0.take() }?.resume(returning: nil)
        }
        var reason: String?
        let finish = await withCancellationDelivered(to: lease.cancel) {
            await withCheckedContinuation { waiting in
                continuation.withLock { $0 = waiting }
                lease.start()
                // Observers don't know of the lease.
                if ObserverList.isObserving {
                    reason = lease.withState { $0.awaitedGate }?.waitDescription(namesHolders: false)
                }
                if let reason { operation.emit(.waiting(for: reason)) }
            }
        }
        if reason != nil, finish != nil { operation.emit(.running) }
        return try finish ?? { throw lease.error ?? CancellationError() }()
    }
}
