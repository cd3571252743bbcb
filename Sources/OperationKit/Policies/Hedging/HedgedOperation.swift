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
/// Each attempt is an operation of its own. Without an input it gets that of this one, which may have none, and without a name it is
/// called “page, attempt 2”, for example. The attempts are children, and are released when they have ended.
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
/// ``AsyncOperation/clock`` measures the delay. What it requires it takes once, for all attempts.
public final class HedgedOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let attempts: Attempts

    init(
        after delay: Duration, maximumAttempts: Int, name: String?, attempts make: @escaping Attempts.Make
    ) {
        attempts = Attempts(of: "attempt", maximum: maximumAttempts)
        super.init()
        self.name = name
        becomeComposite(of: attempts) { [unowned self] input in
            try await race(input, after: delay, maximumAttempts, make)
        }
        if delay < .zero { attempts.refuse("its delay is \(delay)") }
        if maximumAttempts < 1 { attempts.refuse("its maximumAttempts is \(maximumAttempts)") }
    }

    /// Creates an operation that has not started.
    ///
    /// If the delay is less than zero, or the maximum less than 1, it ends with ``RetryError/invalidPolicy(operation:problem:)``,
    /// without an attempt.
    ///
    /// - Parameters:
    ///   - delay: The time from the begin of an attempt to that of the next one. With zero, all begin together.
    ///   - maximumAttempts: How many attempts there are at most, with the first one.
    ///   - name: The name of the operation, for messages and errors.
    ///   - makeOperation: Makes the operation of an attempt, whose number it gets, from 1 on. The operation is new, and is started
    ///     by this one only. Called before each attempt, on a thread that it may block, one call at a time, and not once an
    ///     attempt has succeeded or this operation is cancelled. What it makes while that happens is cancelled, and ends. Released
    ///     at the end.
    public convenience init(
        after delay: Duration, maximumAttempts: Int = 2, name: String? = nil,
        makeOperation: @escaping @Sendable (_ attempt: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(
            after: delay, maximumAttempts: maximumAttempts, name: name,
            attempts: makeOperation)
    }

    /// How many attempts have begun.
    ///
    /// May be read on any thread, at any time.
    public var attemptCount: Int { attempts.count }

    /// Does nothing: `start()` begins the first attempt.
    public override func main(input: Input) {}

    // MARK: - The race

    private func race(
        _ input: Input?, after delay: Duration, _ maximumAttempts: Int, _ make: @escaping Attempts.Make
    ) async throws -> Output {
        // Each task returns the operation that has ended: an attempt, or the delay before the next one.
        try await withThrowingTaskGroup(of: AsyncOperation.self) { group in
            var running: [ObjectIdentifier: AsyncOperation] = [:]
            var (isDue, isOpen, isDecided) = (true, true, false)
            var pause: DelayOperation?
            var (output, failure): (Result<Output, any Error>?, (any Error)?)
            /// Whether the failure is that of an attempt that ran while the operation was cancelled.
            var isLate = false
            while true {
                do {
                    if isDue, isOpen, attempts.count < maximumAttempts {
                        pause.take()?.cancel()
                        attempts.delayEnded()
                        let attempt = try await attempts.next(of: self, input: input, make)
                        _ = attempt.observeFinish(attempts)
                        running[ObjectIdentifier(attempt)] = attempt
                        // Before the attempt, during which the delay may be over.
                        if attempts.count < maximumAttempts {
                            // First, so that the description says so as soon as the clock knows of the delay.
                            attempts.delayBegan(delay, on: clock)
                            let next = clock.startPause(for: delay)
                            pause = next
                            group.addTask {
                                try? await next.waitForFinish()
                                return next
                            }
                        }
                        group.addTask { [attempts] in
                            try await attempts.children.runChild(attempt, weight: 1)
                            return attempt
                        }
                    }
                    if !isOpen {
                        pause?.cancel()
                        attempts.delayEnded()
                        // Once, because many may run.
                        if !isDecided, attempts.winner != nil || output != nil {
                            isDecided = true
                            running.values.forEach { $0.cancel() }
                        }
                    }
                    guard let ended = try await group.next() else { break }
                    let id = ObjectIdentifier(ended)
                    guard running.removeValue(forKey: id) != nil else {
                        isDue = ended === pause
                        continue
                    }
                    let result = self.result(of: ended)
                    // The thread that ends an attempt may be held up before it tells the observers.
                    if case .success = result { attempts.succeeded(ended) }
                    if let winner = attempts.winner {
                        isOpen = false
                        if winner == id { output = output ?? result }
                    } else if case .failure(let error) = result {
                        let isCancellation = error.isCancellation
                        if !isCancellation || failure == nil || attempts.isStopped && !isLate { failure = error }
                        isLate = isLate || attempts.isStopped && !isCancellation
                        isOpen = isOpen && !isCancellation
                        isDue = true
                    }
                } catch {
                    // No attempt was made, or it cannot be one. Where the operation was cancelled meanwhile, what runs
                    // decides.
                    isOpen = false
                    if attempts.isStopped {
                        if !isLate { failure = CancellationError() }
                    } else if attempts.winner == nil {
                        output = .failure(error)
                    }
                }
            }
            return try output?.get() ?? { throw failure ?? CancellationError() }()
        }
    }
}

extension HedgedOperation where Input == Void, Output == Void {
    /// Creates an operation whose attempts are of any class of `AsyncOperation`, compounds included.
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
            attempts: makeOperation)
    }
}
