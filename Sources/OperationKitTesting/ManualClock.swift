import Foundation
import OperationKit

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

    /// A task that is about to sleep, or sleeps. Used with the lock held.
    private final class Sleeper: @unchecked Sendable {
        /// Where it is among those that sleep; `nil` before.
        var place: HeapElementID?
    }

    /// A task that waits until so many sleep, the first of which is due within a duration, if there is one.
    private struct Watcher {
        let id: UInt64
        let count: Int
        let duration: Duration?
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now = Instant(offset: .zero)
        /// To where it is being advanced; the same as `now` otherwise.
        var goal = Instant(offset: .zero)
        /// In the order in which they are due, and those that are due at the same time in the order of their arrival.
        var sleepers = IndexedHeap<Instant, CheckedContinuation<Bool, Never>>()
        var watchers: [Watcher] = []
        var lastID: UInt64 = 0

        /// Whether so many sleep, and the first of them is due within a duration, if there is one.
        func has(_ count: Int, within duration: Duration?) -> Bool {
            if sleepers.count < count { return false }
            guard let duration, let first = sleepers.first else { return true }
            return now.duration(to: first.key) <= duration
        }

        /// Takes those out whose wait is over.
        mutating func takeSatisfied() -> [Watcher] {
            let satisfied = watchers.filter { has($0.count, within: $0.duration) }
            if !satisfied.isEmpty { watchers = watchers.filter { !has($0.count, within: $0.duration) } }
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
    public var now: Instant { change { $0.now } }

    /// Zero: every instant can be reached.
    public var minimumResolution: Duration { .zero }

    /// When those that sleep are due, earliest first.
    public var deadlines: [Duration] {
        var sleepers = change { $0.sleepers }
        var deadlines: [Duration] = []
        while let first = sleepers.first {
            deadlines.append(first.key.offset)
            _ = sleepers.popFirst()
        }
        return deadlines
    }

    // MARK: - Advancing

    /// Advances the clock by a duration. See ``advance(to:)``. Calls on several threads at the same time add up.
    ///
    /// - Precondition: The duration is not negative.
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
        while let sleeper = next(until: instant) { sleeper.resume(returning: true) }
        // What sleeps on may be due within a duration now.
        for watcher in change({ $0.takeSatisfied() }) { watcher.continuation.resume() }
    }

    /// Returns the next sleeper that is due, at its time; without one, the time is that instant.
    private func next(until instant: Instant) -> CheckedContinuation<Bool, Never>? {
        change { state in
            guard let first = state.sleepers.first, first.key <= instant else {
                // What was resumed may have let more time pass already.
                state.now = max(state.now, instant)
                return nil
            }
            state.now = max(state.now, first.key)
            return state.sleepers.popFirst()
        }
    }

    // MARK: - Sleeping

    /// Suspends until the clock has been advanced to the deadline. Returns immediately if it has come.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let sleeper = Sleeper()
        let isDue = await withTaskCancellationHandler {
            await withCheckedContinuation { add(sleeper, until: deadline, $0) }
        } onCancel: {
            let continuation = change { state in sleeper.place.flatMap { state.sleepers.remove($0) } }
            continuation?.resume(returning: false)
        }
        if !isDue { throw CancellationError() }
    }

    private func add(_ sleeper: Sleeper, until deadline: Instant, _ continuation: CheckedContinuation<Bool, Never>) {
        let (answer, satisfied) = change { state -> (Bool?, [Watcher]) in
            // Read with the lock held. A cancellation is marked first, and then looks for the sleeper.
            if Task.isCancelled { return (false, []) }
            if deadline <= state.now { return (true, []) }
            sleeper.place = state.sleepers.insert(continuation, key: deadline)
            return (nil, state.takeSatisfied())
        }
        if let answer { continuation.resume(returning: answer) }
        for watcher in satisfied { watcher.continuation.resume() }
    }

    /// Suspends until tasks sleep, so that advancing the clock reaches them, or until the waiting task is cancelled.
    ///
    /// Operations of one clock share a sleeper: that of the deadline that comes first.
    ///
    /// - Parameter count: How many have to sleep at least.
    public func sleepers(atLeast count: Int = 1) async {
        await sleepers(atLeast: count, within: nil)
    }

    private func sleepers(atLeast count: Int, within duration: Duration?) async {
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
