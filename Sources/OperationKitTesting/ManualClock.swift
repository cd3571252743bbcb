import Foundation

/// A clock whose time passes when a test says so.
///
/// Set it as the `clock` of operations whose timeouts, delays and retries are tested, so that no test sleeps.
///
/// Give it to what sleeps, wait until that sleeps, and advance the clock:
///
/// ```swift
/// let clock = ManualClock()
/// let work = Task { try await clock.sleep(for: .seconds(5)) }
/// await clock.pass(.seconds(5))
/// try await work.value
/// ```
public final class ManualClock: Clock, Sendable {
    /// A time as the distance from the creation of the clock.
    public struct Instant: InstantProtocol, CustomStringConvertible {
        /// The distance.
        public let offset: Duration

        /// Creates an instant.
        public init(offset: Duration) {
            self.offset = offset
        }

        /// Returns the instant after a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// Returns the duration to another instant.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether an instant is before another one.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }

        /// The distance, as a text.
        public var description: String { "\(offset)" }
    }

    private struct Sleeper {
        let id: UInt64
        let deadline: Instant
        let continuation: CheckedContinuation<Bool, Never>
    }

    /// A task that waits until so many sleep that are due within a duration.
    private struct Watcher {
        let id: UInt64
        let count: Int
        let duration: Duration
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now = Instant(offset: .zero)
        /// To where it is being advanced; the same as `now` otherwise.
        var goal = Instant(offset: .zero)
        /// In the order in which they are due, and those that are due at the same time in the order of their arrival.
        var sleepers: [Sleeper] = []
        var watchers: [Watcher] = []
        var lastID: UInt64 = 0

        /// Whether so many sleep that are due within a duration.
        func has(_ count: Int, within duration: Duration) -> Bool {
            sleepers.prefix { $0.deadline.offset - now.offset <= duration }.count >= count
        }

        /// Takes those out whose wait is over.
        mutating func takeSatisfied() -> [Watcher] {
            let satisfied = watchers.filter { has($0.count, within: $0.duration) }
            watchers.removeAll { watcher in satisfied.contains { $0.id == watcher.id } }
            return satisfied
        }

        mutating func makeID() -> UInt64 {
            lastID += 1
            return lastID
        }
    }

    private let lock = NSLock()
    nonisolated(unsafe) private var storage = State()

    private func change<Answer>(_ body: (inout State) -> Answer) -> Answer { lock.withLock { unsafe body(&storage) } }

    /// Creates a clock at time zero.
    public init() {}

    /// The time.
    public var now: Instant { change { $0 }.now }

    /// Zero: every instant can be reached.
    public var minimumResolution: Duration { .zero }

    /// When those that sleep are due, earliest first.
    public var deadlines: [Duration] { change { $0 }.sleepers.map(\.deadline.offset) }

    // MARK: - Advancing

    /// Advances the clock by a duration. See ``advance(to:)``. Calls on several threads at the same time add up.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "A clock does not go back by \(duration).")
        advance { $0.advanced(by: duration) }
    }

    /// Waits until something that sleeps is due within a duration, then lets that time pass.
    ///
    /// What is due later, such as the timeout of an operation whose delay this lets pass, does not end the wait. What is due earlier does,
    /// such as the permit of a rate limit that has been used. To let time pass in which nothing happens, wait for
    /// ``sleepers(atLeast:)`` and call ``advance(by:)``. A task that is cancelled lets no time pass.
    ///
    /// - Precondition: The duration is above zero.
    public func pass(_ duration: Duration) async {
        precondition(duration > .zero, "Nothing that sleeps is due within \(duration).")
        await sleepers(atLeast: 1, within: duration)
        if !Task.isCancelled { advance(by: duration) }
    }

    /// Lets time pass until an instant, which must not be in the past. Resumes the sleepers that are due on the way, in
    /// the order in which they are due, those that are due at the same time in the order of their arrival, and shows
    /// each deadline as ``now`` meanwhile. They go on concurrently: what they do is not waited for.
    public func advance(to instant: Instant) {
        precondition(instant >= now, "A clock does not go back from \(now) to \(instant).")
        advance { max($0, instant) }
    }

    /// Advances the clock to what follows from its time, or from the instant to which it is being advanced already.
    private func advance(to goal: (Instant) -> Instant) {
        let instant = change { state in
            state.goal = goal(state.goal)
            return state.goal
        }
        while let sleeper = next(until: instant) { sleeper.continuation.resume(returning: true) }
        // What sleeps on may be due within a duration now.
        for watcher in change({ $0.takeSatisfied() }) { watcher.continuation.resume() }
    }

    /// Returns the next sleeper that is due, at its time; without one, the time is that instant.
    private func next(until instant: Instant) -> Sleeper? {
        change { state in
            guard let first = state.sleepers.first, first.deadline <= instant else {
                // What was resumed may have let more time pass already.
                state.now = max(state.now, instant)
                return nil
            }
            state.now = max(state.now, first.deadline)
            return state.sleepers.removeFirst()
        }
    }

    // MARK: - Sleeping

    /// Suspends until the clock has been advanced to the deadline. Returns immediately if it has come.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        let id = change { $0.makeID() }
        let isDue = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                add(Sleeper(id: id, deadline: deadline, continuation: continuation))
            }
        } onCancel: {
            let sleeper = change { state -> Sleeper? in
                state.sleepers.firstIndex { $0.id == id }.map { state.sleepers.remove(at: $0) }
            }
            sleeper?.continuation.resume(returning: false)
        }
        if !isDue { throw CancellationError() }
    }

    private func add(_ sleeper: Sleeper) {
        let (answer, satisfied) = change { state -> (Bool?, [Watcher]) in
            // Read with the lock held. A cancellation is marked first, and then looks for the sleeper.
            if Task.isCancelled { return (false, []) }
            if sleeper.deadline <= state.now { return (true, []) }
            let index = state.sleepers.firstIndex { $0.deadline > sleeper.deadline } ?? state.sleepers.endIndex
            state.sleepers.insert(sleeper, at: index)
            return (nil, state.takeSatisfied())
        }
        if let answer { sleeper.continuation.resume(returning: answer) }
        for watcher in satisfied { watcher.continuation.resume() }
    }

    /// Suspends until tasks sleep, so that advancing the clock reaches them, or until the waiting task is cancelled.
    ///
    /// Operations of one clock share a sleeper: that of the deadline that comes first.
    ///
    /// - Parameter count: How many have to sleep at least.
    public func sleepers(atLeast count: Int = 1) async {
        await sleepers(atLeast: count, within: .seconds(Int64.max))
    }

    private func sleepers(atLeast count: Int, within duration: Duration) async {
        let id = change { $0.makeID() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSatisfied = change { state in
                    if state.has(count, within: duration) || Task.isCancelled { return true }
                    state.watchers.append(
                        Watcher(id: id, count: count, duration: duration, continuation: continuation))
                    return false
                }
                if isSatisfied { continuation.resume() }
            }
        } onCancel: {
            let watcher = change { state -> Watcher? in
                state.watchers.firstIndex { $0.id == id }.map { state.watchers.remove(at: $0) }
            }
            watcher?.continuation.resume()
        }
    }
}
