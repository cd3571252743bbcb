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
/// at a time: what would begin while a run lasts is skipped. Each is an operation of its own. Without an input it gets
/// that of this one, which may have none, and without a name it is called “poll, run 2”, for example. The runs are children, and are released when they have ended. In between
/// this operation executes, and keeps its place on its queue, but no thread waits.
///
/// ## How it ends
///
/// | What happens | The operation |
/// |---|---|
/// | `until` returns `true` for the output of a run | succeeds with that output |
/// | `until` throws | ends with that error |
/// | a run fails | ends with its error, unless `continuesAfterFailure` is `true` |
/// | a run can never begin, because a composite around it holds what it requires | ends with ``ResourceError/heldByComposite(operation:resource:composite:)`` |
/// | a run ends with an error whose `isCancellation` is true | ends with that error |
/// | the last run that `maximumCount` allows has ended | ends as that run did |
/// | it is cancelled | ends as cancelled, after the run that it cancels; a failure of that run stands, and so does what `until` decides meanwhile |
///
/// Errors of the closure, and of operations that it must not return, are those of a ``RetryOperation``, and what it
/// requires its runs require, as attempts of that do. The ``AsyncOperation/progress`` counts runs, if there is a maximum,
/// and is 0 until the end otherwise. ``AsyncOperation/clock`` measures the time.
public final class RepeatOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let runs: Attempts

    init(
        every interval: Duration, maximumCount: Int?, continuesAfterFailure: Bool, name: String?,
        predicate: @escaping @Sendable (Output) throws -> Bool, runs make: @escaping Attempts.Make
    ) {
        var ledger = ProgressLedger()
        if let maximumCount { ledger.added(ProgressLedger.weight(Int64(maximumCount))) }
        runs = Attempts(of: "run", maximum: maximumCount, ledger: ledger)
        super.init()
        self.name = name
        if let maximumCount, maximumCount < 1 { runs.refuse("its maximumCount is \(maximumCount)") }
        if interval <= .zero { runs.refuse("its interval is \(interval)") }
        becomeComposite(of: runs) { [unowned self] input in
            var machine = RepeatStateMachine(every: interval)
            let clock = clock
            let time = TimeSource(clock)
            var firstStart: Duration?
            while true {
                // A run is released before the delay.
                let (result, runStart) = try await run(input, time, weight: maximumCount == nil ? 0 : 1, make)
                let start = firstStart ?? runStart
                firstStart = start
                switch result {
                case .success(let output):
                    try runs.checkStopped()
                    if try await runs.children.call({ try predicate(output) }) { return output }
                case .failure(let error):
                    if !continuesAfterFailure || error.isCancellation || error.isLasting || runs.isStopped {
                        throw error
                    }
                }
                if let maximumCount, runs.count >= maximumCount { return try result.get() }
                try await runs.wait(machine.runEnded(elapsed: time.now() - start), on: clock)
            }
        }
    }

    /// Creates an operation that has not started.
    ///
    /// If the interval is zero or less, or the maximum less than 1, it ends with ``RetryError/invalidPolicy(operation:problem:)``,
    /// without a run.
    ///
    /// - Parameters:
    ///   - interval: The time from the begin of one run to that of the next one.
    ///   - maximumCount: How many runs there are at most; `nil` for any number.
    ///   - continuesAfterFailure: Whether another run follows one that has failed.
    ///   - name: The name of the operation, for messages and errors.
    ///   - predicate: Says whether the output of a run ends the repetition. Called after each run that succeeded, on a thread
    ///     that it may block, and not once the operation is cancelled. Without it, only the maximum, a failure or a cancellation does.
    ///     Released at the end.
    ///   - makeOperation: Makes the operation of a run, whose number it gets, from 1 on. The operation is new, and is started by
    ///     this one only. Called like `predicate`, one call at a time. What it makes while this operation is cancelled is cancelled,
    ///     and ends. If it throws, this operation ends with the error.
    public convenience init(
        every interval: Duration, maximumCount: Int? = nil, continuesAfterFailure: Bool = false, name: String? = nil,
        until predicate: @escaping @Sendable (_ output: Output) throws -> Bool = { _ in false },
        makeOperation: @escaping @Sendable (_ run: Int) throws -> IOOperation<Input, Output>
    ) {
        self.init(
            every: interval, maximumCount: maximumCount, continuesAfterFailure: continuesAfterFailure, name: name,
            predicate: predicate, runs: makeOperation)
    }

    /// How many runs have begun.
    ///
    /// May be read on any thread, at any time.
    public var attemptCount: Int { runs.count }

    /// How many runs have begun.
    @available(*, deprecated, renamed: "attemptCount")
    public var runCount: Int { attemptCount }

    /// Does nothing: `start()` begins the first run.
    public override func main(input: Input) {}

    override var passesRequestToChildren: Bool { true }

    private func run(
        _ input: Input?, _ time: TimeSource, weight: Int64, _ make: @escaping Attempts.Make
    ) async throws -> (result: Result<Output, any Error>, start: Duration) {
        let run = try await runs.next(of: self, input: input, make)
        let start = time.now()
        try await runs.children.runChild(run, weight: weight)
        return (result(of: run), start)
    }
}

extension RepeatOperation where Input == Void, Output == Void {
    /// Creates an operation whose runs are of any class of `AsyncOperation`, compounds included.
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
            predicate: { _ in try predicate() }, runs: makeOperation)
    }
}

/// A state machine that decides when the runs of a repeated operation begin: at multiples of an interval, counted from the
/// begin of the first one. So they do not drift, however long the runs and the timers take.
struct RepeatStateMachine {
    private let interval: Duration
    /// At which multiple of the interval the current run was due.
    private var tick = 0

    /// - Parameter interval: More than zero. Less than a nanosecond counts as one, more than a century as a century.
    init(every interval: Duration) {
        self.interval = min(max(interval, .nanoseconds(1)), .century)
    }

    /// The current run ended, and is not the last one.
    ///
    /// Ticks that passed during the run are skipped. One at which it ended just now is not.
    ///
    /// - Parameter elapsed: The time since the first run began.
    /// - Returns: The delay before the next run.
    mutating func runEnded(elapsed: Duration) -> Duration {
        // A timer may have come early.
        tick = max(tick + 1, intervals(in: elapsed))
        return max(interval * tick - elapsed, .zero)
    }

    /// How many intervals the time has, rounded up.
    private func intervals(in time: Duration) -> Int {
        // A clock of a user's may go back by any time.
        guard time > .zero else { return 0 }
        let most = Int.max >> 1
        // The quotient may be off by one or two, where the numbers are large.
        var count = Int(min((time / interval).rounded(.up), Double(most)))
        while interval * (count - 1) >= time { count -= 1 }
        while count < most, interval * count < time { count += 1 }
        return count
    }
}
