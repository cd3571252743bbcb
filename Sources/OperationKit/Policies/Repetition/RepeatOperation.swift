import Foundation

/// An operation that makes an operation and runs it, again and again, until a condition holds: it polls.
///
/// ```swift
/// enum JobState { case waiting, done }
///
/// let poll = RepeatOperation(every: .seconds(5), maximumCount: 100, name: "poll", until: { $0 == .done }) { run in
///     TaskOperation { run < 3 ? JobState.waiting : .done }
/// }
/// poll.timeout = .seconds(3_600)
/// print(try await OperationQueue().run(poll))
/// ```
///
/// The first run begins immediately, and the others at multiples of the interval after that, however long runs take. There is one
/// at a time: what would begin while a run lasts is skipped. Each is an operation of its own, which gets the input of this one, and
/// without a name is called “poll, run 2”, for example. The runs are children, and are released when they have ended. In between
/// this operation executes, and keeps its place on its queue, but no thread waits.
///
/// ## How it ends
///
/// | What happens | The operation |
/// |---|---|
/// | `until` returns `true` for the output of a run | succeeds with that output |
/// | `until` throws | ends with that error |
/// | a run fails | ends with its error, unless `continuesAfterFailure` is `true` |
/// | a run ends with an error whose `isCancellation` is true | ends with that error |
/// | the last run that `maximumCount` allows has ended | ends as that run did |
/// | it is cancelled | ends as cancelled, after the run that it cancels; a failure of that run stands, and so does what `until` decides meanwhile |
///
/// Errors of the closure, and of operations that it must not return, are those of a ``RetryOperation``. The
/// ``AsyncOperation/progress`` counts runs, if there is a maximum, and is 0 until the end otherwise. ``AsyncOperation/clock``
/// measures the time.
public final class RepeatOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    /// Says whether the output of a run ends the repetition.
    typealias Predicate = @Sendable (Output) throws -> Bool

    private let runner: AttemptRunner<Input, Output>
    private let maximumCount: Int?
    private let continuesAfterFailure: Bool
    // The lock of the operation guards these.
    private var schedule: RepeatSchedule
    /// Set until the end.
    private var predicate: Predicate?
    private var time: TimeSource?
    private var firstStart: Duration?
    /// When the next run begins, while it has not.
    private var nextStart: Duration?
    private var current: Attempt<Input, Output>?
    private var decision: Result<Output, any Error>?
    private var begunCount = 0

    init(
        every interval: Duration, maximumCount: Int?, continuesAfterFailure: Bool, name: String?,
        predicate: @escaping Predicate, runs: @escaping AttemptRunner<Input, Output>.Make
    ) {
        let title = name ?? "RepeatOperation"
        precondition(interval > .zero, "OperationKit: “\(title)” cannot be repeated every \(interval)")
        precondition(maximumCount ?? 1 >= 1, "OperationKit: “\(title)” cannot run \(maximumCount ?? 0) times")
        schedule = RepeatSchedule(every: interval, maximumCount: maximumCount)
        self.maximumCount = maximumCount
        self.continuesAfterFailure = continuesAfterFailure
        self.predicate = predicate
        var ledger = ProgressLedger()
        if let maximumCount { ledger.added(ProgressLedger.weight(Int64(maximumCount))) }
        runner = AttemptRunner(of: "run", ledger: ledger, weight: maximumCount == nil ? 0 : 1, runs)
        super.init()
        becomeComposite(of: runner.children)
        self.name = name
        runner.attach(
            to: self, start: { [unowned self] in startRuns() }, takeResult: { [unowned self] in takeResult() },
            summary: { [weak self] in self?.summary })
    }

    /// Creates an operation that has not started.
    ///
    /// Traps if the interval is zero or less, or if the maximum is less than 1.
    ///
    /// - Parameters:
    ///   - interval: The time from the begin of one run to that of the next one.
    ///   - maximumCount: How many runs there are at most; `nil` for any number.
    ///   - continuesAfterFailure: Whether another run follows one that has failed.
    ///   - name: The name of the operation, for messages and errors.
    ///   - predicate: Says whether the output of a run ends the repetition. Called after each run that succeeded, on a thread of a
    ///     private queue, and not once the operation is cancelled. Without it, only the maximum, a failure or a cancellation does.
    ///     Released at the end.
    ///   - makeOperation: Makes the operation of a run, whose number it gets, from 1 on. The operation is new, and is started by
    ///     this one only. Called like `predicate`, one call at a time. If it throws, this operation ends with the error.
    public convenience init(
        every interval: Duration, maximumCount: Int? = nil, continuesAfterFailure: Bool = false, name: String? = nil,
        until predicate: @escaping @Sendable (_ output: Output) throws -> Bool = { _ in false },
        makeOperation: @escaping @Sendable (_ run: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(
            every: interval, maximumCount: maximumCount, continuesAfterFailure: continuesAfterFailure, name: name,
            predicate: predicate, runs: { Attempt(try makeOperation($0)) })
    }

    /// How many runs have begun.
    ///
    /// May be read on any thread, at any time.
    public var runCount: Int { lock.withLock { begunCount } }

    /// Does nothing: `start()` begins the first run.
    public override func main(input: Input) {}

    // MARK: - Runs

    private func startRuns() {
        guard let input = requiredInput() else { return }
        let clock = clock
        let time = TimeSource(clock)
        lock.withLock { self.time = time }
        runner.start(with: input, for: self) { [unowned self] in beginRun() }
    }

    private func beginRun() {
        let (number, time) = lock.withLock { (schedule.run, self.time) }
        do {
            try runner.begin(number, of: self) { run in
                let now = time?.now()
                lock.withLock {
                    firstStart = firstStart ?? now
                    nextStart = nil
                    current = run
                    begunCount = number
                }
            } then: { [unowned self] in
                runEnded()
            }
        } catch {
            decide(.failure(error))
        }
    }

    /// Called in a turn, unless the operation was cancelled before.
    private func runEnded() {
        let (run, predicate, isLast) = lock.withLock { (current.take(), self.predicate, schedule.isLastRun) }
        guard let run, let predicate else { return }
        let result = run.result
        do {
            switch result {
            case .success(let output): if try predicate(output) { return decide(result) }
            case .failure(let error): if !continuesAfterFailure || error.isCancellation { return decide(result) }
            }
            if isLast { return decide(result) }
            guard let now = lock.withLock({ time })?.now(), !runner.isStopped(self) else { return }
            let delay = lock.withLock {
                let delay = schedule.runEnded(elapsed: now - (firstStart ?? now))
                nextStart = now + delay
                return delay
            }
            try runner.wait(delay, in: self) { [unowned self] in beginRun() }
        } catch {
            decide(.failure(error))
        }
    }

    // MARK: - The end

    private func decide(_ result: Result<Output, any Error>) {
        // A run that cannot be run is released after unlocking.
        let unused = lock.withLock {
            self.decision = result
            return current.take()
        }
        withExtendedLifetime(unused) {}
    }

    /// Returns the result, and releases all that is left.
    private func takeResult() -> Result<Output, any Error> {
        let (result, current, predicate) = lock.withLock {
            (self.decision.take(), self.current.take(), self.predicate.take())
        }
        withExtendedLifetime(predicate) {}
        if let result { return result }
        // Whether its output would have been enough was not asked.
        if case .failure(let error)? = current?.result { return .failure(error) }
        return .failure(CancellationError())
    }

    private var summary: [String] {
        let (number, time, nextStart) = lock.withLock { (schedule.run, self.time, self.nextStart) }
        guard let time else { return [] }
        return runner.summary(number, of: maximumCount, beginsIn: nextStart.map { $0 - time.now() })
    }
}

extension RepeatOperation where Input == Void, Output == Void {
    /// Creates an operation whose runs are operations of any class, compounds included.
    ///
    /// - Parameters:
    ///   - interval: The time from the begin of one run to that of the next one.
    ///   - maximumCount: How many runs there are at most; `nil` for any number.
    ///   - continuesAfterFailure: Whether another run follows one that has failed.
    ///   - name: The name of the operation, for messages and errors.
    ///   - predicate: Says after each run that succeeded whether that was the last one.
    ///   - makeOperation: Makes the operation of a run. See the other initializer.
    @_disfavoredOverload
    public convenience init(
        every interval: Duration, maximumCount: Int? = nil, continuesAfterFailure: Bool = false, name: String? = nil,
        until predicate: @escaping @Sendable () throws -> Bool = { false },
        makeOperation: @escaping @Sendable (_ run: Int) throws -> AsyncOperation
    ) {
        self.init(
            every: interval, maximumCount: maximumCount, continuesAfterFailure: continuesAfterFailure, name: name,
            predicate: { _ in try predicate() }, runs: { Attempt(ofAnyClass: try makeOperation($0)) })
    }
}
