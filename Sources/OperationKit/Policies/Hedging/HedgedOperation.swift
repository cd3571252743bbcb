import Foundation

/// An operation that begins a second attempt when the first one takes long, and takes the result of the one that succeeds first.
///
/// ```swift
/// let page = HedgedOperation(after: .milliseconds(300), name: "page") { attempt in
///     TaskOperation { "page, from server \(attempt)" }
/// }
/// print(try await OperationQueue().run(page))
/// ```
///
/// Where one request of a hundred is slow, two at the same time are seldom both slow. Set the delay so that few requests take longer,
/// and use it for work that may be done twice.
///
/// Each attempt is an operation of its own, which gets the input of this one, and without a name is called “page, attempt 2”, for
/// example. The attempts are children, and are released when they have ended.
///
/// ## How it ends
///
/// | What happens | What follows |
/// |---|---|
/// | no attempt has ended within the delay after the begin of the last one | another attempt begins, if there may be more |
/// | an attempt fails | the same, without waiting for the delay |
/// | an attempt succeeds | the others are cancelled; after they have ended, the operation ends with the output |
/// | all attempts have failed | the operation ends with the error of the one that failed last |
/// | an attempt ends with an error whose `isCancellation` is true | no further attempt begins; those that run decide |
/// | the operation is cancelled | all attempts are; it ends after them, and a success or a failure of one of those that run stands |
///
/// If `makeOperation` throws, or returns an operation that cannot be an attempt, the others are cancelled, and the operation ends with
/// the error: see ``RetryOperation``. Its ``AsyncOperation/progress`` is that of the attempt that came farthest.
/// ``AsyncOperation/clock`` measures the delay. A further attempt begins on a thread of the global queues: while work that blocks
/// fills these, it begins late. So hedge work that is asynchronous.
public final class HedgedOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let runner: AttemptRunner<Input, Output>
    private let delay: Duration
    private let maximumAttempts: Int
    // The lock of the operation guards these.
    private var machine: HedgeStateMachine
    private var running: [Int: Attempt<Input, Output>] = [:]
    /// The result of the winner or, as long as there is none, the one to end with without a winner.
    private var decision: Result<Output, any Error>?
    private var time: TimeSource?
    /// When the next attempt begins, during a delay.
    private var nextStart: Duration?

    init(
        after delay: Duration, maximumAttempts: Int, name: String?,
        attempts: @escaping AttemptRunner<Input, Output>.Make
    ) {
        let title = name ?? "HedgedOperation"
        precondition(delay >= .zero, "OperationKit: “\(title)” cannot be hedged after \(delay)")
        precondition(maximumAttempts >= 1, "OperationKit: “\(title)” cannot have \(maximumAttempts) attempts")
        self.delay = delay
        self.maximumAttempts = maximumAttempts
        machine = HedgeStateMachine(maximumAttempts: maximumAttempts)
        runner = AttemptRunner(of: "attempt", attempts)
        super.init()
        becomeComposite(of: runner.children)
        self.name = name
        runner.attach(
            to: self, start: { [unowned self] in startAttempts() }, takeResult: { [unowned self] in takeResult() },
            summary: { [weak self] in self?.summary })
    }

    /// Creates an operation that has not started.
    ///
    /// Traps if the delay is less than zero, or the maximum less than 1.
    ///
    /// - Parameters:
    ///   - delay: The time from the begin of an attempt to that of the next one. With zero, all begin together.
    ///   - maximumAttempts: How many attempts there are at most, with the first one.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on. The operation is new, and is started
    ///     by this one only. Called before each attempt on a thread of a private queue, one call at a time, and not once an
    ///     attempt has succeeded or this operation is cancelled. Released at the end.
    public convenience init(
        after delay: Duration, maximumAttempts: Int = 2, name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(
            after: delay, maximumAttempts: maximumAttempts, name: name,
            attempts: { Attempt(try makeOperation($0)) })
    }

    /// How many attempts have begun.
    ///
    /// May be read on any thread, at any time.
    public var attemptCount: Int { lock.withLock { machine.last } }

    /// Does nothing: `start()` begins the first attempt.
    public override func main(input: Input) {}

    // MARK: - Attempts

    private func startAttempts() {
        guard let input = requiredInput() else { return }
        let clock = clock
        let time = TimeSource(clock)
        lock.withLock { self.time = time }
        runner.start(with: input, for: self) { [unowned self] in perform { $0.started() } }
    }

    /// Runs an event of the machine with the lock held, then performs the actions that follow from it.
    private func perform(_ event: (inout HedgeStateMachine) -> HedgeStateMachine.Action?) {
        var next = lock.withLock { event(&machine) }
        while let action = next {
            next = nil
            switch action {
            case .begin(let number, let isLast):
                endDelay()
                if let hasBegun = begin(number, isLast: isLast) {
                    next = lock.withLock { hasBegun ? machine.began() : machine.beginFailed() }
                }
            case .endDelay:
                endDelay()
            case .cancelOthers:
                endDelay()
                let others = lock.withLock { running.values.map(\.operation) }
                for operation in others { operation.cancel() }
            }
        }
    }

    /// - Returns: Whether the attempt runs; `nil` if the operation has been cancelled, or given an outcome, and ends.
    private func begin(_ number: Int, isLast: Bool) -> Bool? {
        do {
            let hasBegun = try runner.begin(number, of: self) { attempt in
                // Before the attempt can end, so that it is not the delay of an earlier one that replaces a later one.
                if !isLast { try beginDelay(after: number) }
                let isNeeded = lock.withLock {
                    running[number] = attempt
                    return !machine.isDecided
                }
                if !isNeeded { attempt.operation.cancel() }
            } then: { [unowned self] in
                attemptEnded(number)
            }
            return hasBegun ? true : nil
        } catch {
            // The attempt does not run. Release it, and an earlier result, after unlocking.
            let unused = lock.withLock {
                let attempt = running.removeValue(forKey: number)
                let earlier = machine.isDecided ? nil : exchange(&decision, with: .failure(error))
                return (attempt, earlier)
            }
            withExtendedLifetime(unused) {}
            return false
        }
    }

    private func beginDelay(after number: Int) throws {
        let now = lock.withLock { time }?.now()
        lock.withLock { nextStart = now.map { $0 + delay } }
        try runner.wait(delay, in: self) { [unowned self] in perform { $0.delayEnded(after: number) } }
    }

    private func endDelay() {
        lock.withLock { nextStart = nil }
        runner.endDelay()
    }

    /// Called in a turn, unless the operation was cancelled before.
    private func attemptEnded(_ number: Int) {
        guard let attempt = lock.withLock({ running.removeValue(forKey: number) }) else { return }
        let result = attempt.result
        let ending: HedgeStateMachine.Ending
        switch result {
        case .success: ending = .success
        case .failure(let error): ending = error.isCancellation ? .cancellation : .failure
        }
        var replaced: Result<Output, any Error>?
        perform { machine in
            let wasDecided = machine.isDecided
            let action = machine.attemptEnded(number, with: ending)
            // A failure says more than a cancellation.
            if !wasDecided, ending != .cancellation || self.decision == nil {
                replaced = exchange(&self.decision, with: result)
            }
            return action
        }
        withExtendedLifetime(replaced) {}
    }

    // MARK: - The end

    /// Returns the result, and releases all that is left.
    private func takeResult() -> Result<Output, any Error> {
        // Those that ended after a cancellation, which keeps turns from coming.
        let (running, result, isDecided) = lock.withLock {
            (exchange(&self.running, with: [:]), self.decision.take(), machine.isDecided)
        }
        if let result, isDecided || !isCancelled { return result }
        let results = running.sorted { $0.key < $1.key }.map { $0.value.result }
        let success = results.first { (try? $0.get()) != nil }
        let failure = results.first { result in
            if case .failure(let error) = result { !error.isCancellation } else { false }
        }
        return success ?? failure ?? .failure(CancellationError())
    }

    private var summary: [String] {
        let (last, time, nextStart) = lock.withLock { (machine.last, self.time, self.nextStart) }
        guard let time else { return [] }
        let text = runner.summary(last, of: maximumAttempts, beginsIn: nil)
        guard let nextStart else { return text }
        return text + runner.summary(last + 1, of: maximumAttempts, beginsIn: nextStart - time.now())
    }
}

extension HedgedOperation where Input == Void, Output == Void {
    /// Creates an operation whose attempts are operations of any class, compounds included.
    ///
    /// - Parameters:
    ///   - delay: The time from the begin of an attempt to that of the next one. With zero, all begin together.
    ///   - maximumAttempts: How many attempts there are at most, with the first one.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt. See the other initializer.
    @_disfavoredOverload
    public convenience init(
        after delay: Duration, maximumAttempts: Int = 2, name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> AsyncOperation
    ) {
        self.init(
            after: delay, maximumAttempts: maximumAttempts, name: name,
            attempts: { Attempt(ofAnyClass: try makeOperation($0)) })
    }
}
