import Foundation

/// Runs the attempts of one operation: operations that a closure makes while it runs.
///
/// The attempts are the children of a scheduler, and so are the delays between them, and the *turns* that decide what
/// follows. A turn comes after an attempt or a delay and is added together with it, so the operation does not end before
/// a turn has added nothing. A cancellation ends a delay, and the turn after it does not come. What has ended is released.
final class AttemptRunner<Input: Sendable, Output: Sendable>: Sendable {
    typealias Make = @Sendable (_ number: Int) throws -> Attempt<Input, Output>

    let children: ChildScheduler
    /// What users call an attempt.
    private let noun: String
    /// The share of each attempt in the progress.
    private let weight: Int64

    private struct State {
        /// Released at the end.
        var make: Make?
        var input: Input?
        /// The delay before the next attempt, until that begins.
        var delay: DelayOperation?
    }

    private let state: Locked<State>

    /// - Parameters:
    ///   - noun: What users call an attempt.
    ///   - ledger: How attempts count in the progress. In the default the one that came farthest counts.
    ///   - weight: The share of each attempt in the progress.
    ///   - make: Makes the operation of an attempt.
    init(
        of noun: String, ledger: ProgressLedger = ProgressLedger(ofAlternatives: true), weight: Int64 = 1,
        _ make: @escaping Make
    ) {
        self.noun = noun
        self.weight = weight
        state = Locked(State(make: make))
        children = ChildScheduler(
            limit: OperationQueue.defaultMaxConcurrentOperationCount, failurePolicy: .continueAll,
            collectsFailures: false, unit: "\(noun)s")
        children.changeProgress { $0 = ledger }
    }

    /// Makes the attempts those of an operation.
    ///
    /// - Parameters:
    ///   - composite: The operation.
    ///   - start: Called on the thread that starts the operation. It calls ``start(with:for:_:)``.
    ///   - takeResult: Called once, when all attempts have ended.
    ///   - summary: Called for descriptions, on any thread.
    func attach(
        to composite: IOOperation<Input, Output>, start: @escaping @Sendable () -> Void,
        takeResult: @escaping @Sendable () -> Result<Output, any Error>, summary: @escaping @Sendable () -> [String]?
    ) {
        children.attach(
            to: composite,
            CompositeHandlers(
                start: start,
                finished: { [unowned self, unowned composite] _, list in
                    release()
                    composite.childrenFinished(with: takeResult(), &list)
                },
                describe: { [weak self] snapshot in
                    let delay = self?.state.withLock { $0.delay }
                    snapshot.children.removeAll { $0.operation is TurnOperation || $0.operation === delay }
                    snapshot.summary = summary() ?? []
                }))
    }

    /// Starts with a turn that makes the first attempt.
    func start(with input: Input, for composite: AsyncOperation, _ body: @escaping @Sendable () -> Void) {
        children.prepareQueue(for: composite)
        state.withLock { $0.input = input }
        let turn = TurnOperation(of: composite.displayName, body)
        _ = turn.adopt(into: children)
        children.addAdopted(turn, weight: 0)
        children.run()
    }

    /// Describes what the operation does: “attempt 3 of 5 begins in 1.4 s”.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt that began last, or begins next.
    ///   - maximum: How many attempts there are at most, if that is known.
    ///   - delay: The time until it begins, if it has not.
    /// - Returns: One remark.
    func summary(_ number: Int, of maximum: Int?, beginsIn delay: Duration?) -> [String] {
        let text = "\(noun) \(number)" + (maximum.map { " of \($0)" } ?? "")
        return [delay.map { "\(text) begins in \(ageText(max($0, .zero)))" } ?? text]
    }

    /// Whether no further attempt is to begin, because the operation was cancelled, or given an outcome.
    ///
    /// What is around the operation stops it before it cancels it. It must not end before it is cancelled, so it is cancelled
    /// here then.
    func isStopped(_ composite: AsyncOperation) -> Bool {
        if !composite.isCancelled {
            guard children.cancelsNewChildren else { return false }
            composite.cancel()
        }
        return true
    }

    /// Releases the closure and the input. What is being made meanwhile is not affected.
    private func release() {
        let released = state.withLock { ($0.make.take(), $0.input.take(), $0.delay.take()) }
        withExtendedLifetime(released) {}
    }
}

// MARK: - Attempts and delays

extension AttemptRunner {
    /// Makes an attempt, runs it, and then calls a closure.
    ///
    /// - Parameters:
    ///   - number: The number of the attempt, from 1 on.
    ///   - composite: The operation whose attempt it is.
    ///   - willRun: Called with the attempt before that can start. If this method throws after that, it does not start.
    ///   - body: Called in a turn after the attempt, unless the operation is cancelled before. It may come before this
    ///     method returns.
    /// - Returns: Whether there was an attempt. If not, no further one is to begin.
    /// - Throws: The error of the closure that makes operations, or one about the operation that it made.
    @discardableResult
    func begin(
        _ number: Int, of composite: AsyncOperation, willRun: (Attempt<Input, Output>) throws -> Void,
        then body: @escaping @Sendable () -> Void
    ) throws -> Bool {
        guard let attempt = try makeAttempt(number, of: composite) else { return false }
        try willRun(attempt)
        try add(attempt.operation, weight: weight, to: composite, then: body)
        return true
    }

    /// Calls the closure. The operation that it makes gets the input and, where it has none, a name.
    private func makeAttempt(_ number: Int, of composite: AsyncOperation) throws -> Attempt<Input, Output>? {
        let (make, input) = state.withLock { ($0.make, $0.input) }
        guard let make, !isStopped(composite) else { return nil }
        let attempt = try make(number)
        let operation = attempt.operation
        if composite.isInside(operation) {
            throw CompoundOperationError.dependencyCycle(
                name: composite.displayName,
                path: [composite.displayName] + (operation === composite ? [] : [operation.displayName]))
        }
        let parent = operation.withState { $0.membership.parent }
        if operation.isExecuting || operation.isFinished || parent === children {
            throw RetryError.operationReused(operation: composite.displayName, attempt: number)
        }
        if parent != nil {
            throw CompoundAdditionError.alreadyAdded(
                operation: operation.displayName, compound: composite.displayName)
        }
        if isStopped(composite) { return nil }
        if let input { attempt.giveInput(input) }
        if operation.name == nil { operation.name = "\(composite.displayName), \(noun) \(number)" }
        return attempt
    }

    /// Lets some time pass, and then calls a closure. Ends the delay before, if there is one.
    ///
    /// - Parameters:
    ///   - duration: The time. With zero, or less, the closure is called immediately.
    ///   - composite: The operation whose clock measures the time.
    ///   - body: Called in a turn after the delay, unless the operation is cancelled before.
    /// - Throws: An error, if the operation takes no children any more.
    func wait(_ duration: Duration, in composite: AsyncOperation, then body: @escaping @Sendable () -> Void) throws {
        guard duration > .zero else { return body() }
        let delay = DelayOperation(for: duration, name: "delay of \(composite.displayName)")
        delay.clock = composite.clock
        delay.hideFromObservers()
        endDelay(replacingBy: delay)
        try add(delay, weight: 0, to: composite, then: body)
    }

    /// Ends the delay, if there is one. The turn after it still comes.
    func endDelay(replacingBy next: DelayOperation? = nil) {
        let delay = state.withLock { exchange(&$0.delay, with: next) }
        delay?.cancel()
    }

    private func add(
        _ operation: AsyncOperation, weight: Int64, to composite: AsyncOperation,
        then body: @escaping @Sendable () -> Void
    ) throws {
        let turn = TurnOperation(of: composite.displayName, body)
        turn.addDependency(operation)
        do {
            // Its share was counted from the beginning, where there is one.
            try children.add([operation, turn], weights: [weight, 0], to: composite, inPlaceOf: weight)
        } catch {
            // The operation may finish just when the turn is freed.
            turn.removeDependency(operation)
            throw error
        }
    }
}
