import Foundation
package import Testing

/// A clock whose time passes when a test says so.
///
/// Give it to what sleeps, wait until that sleeps, and advance the clock:
///
/// ```swift
/// let clock = ManualClock()
/// let work = Task { try await clock.sleep(for: .seconds(5)) }
/// await clock.pass(.seconds(5))
/// try await work.value
/// ```
package final class ManualClock: Clock, Sendable {
    /// A time as the distance from the creation of the clock.
    package struct Instant: InstantProtocol, CustomStringConvertible {
        package let offset: Duration

        package init(offset: Duration) {
            self.offset = offset
        }

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        package func duration(to other: Instant) -> Duration { other.offset - offset }

        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }

        package var description: String { "\(offset)" }
    }

    private struct Sleeper {
        let id: UInt64
        let deadline: Instant
        let continuation: CheckedContinuation<Bool, Never>
    }

    /// A task that waits until so many sleep.
    private struct Watcher {
        let id: UInt64
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now = Instant(offset: .zero)
        /// In the order in which they are due, and those that are due at the same time in the order of their arrival.
        var sleepers: [Sleeper] = []
        var watchers: [Watcher] = []
        /// Sleeps and watches that were cancelled before they began.
        var cancelledBeforehand: Set<UInt64> = []
        var lastID: UInt64 = 0

        mutating func makeID() -> UInt64 {
            lastID += 1
            return lastID
        }
    }

    private let state = Shared(State())

    package init() {}

    package var now: Instant { state.value.now }

    package var minimumResolution: Duration { .zero }

    /// When those that sleep are due, earliest first.
    package var deadlines: [Duration] { state.value.sleepers.map(\.deadline.offset) }

    // MARK: - Advancing

    /// Lets time pass. See ``advance(to:)``.
    package func advance(by duration: Duration) {
        advance(to: now.advanced(by: duration))
    }

    /// Waits until a task sleeps, then lets time pass.
    package func pass(_ duration: Duration) async {
        await sleepers()
        advance(by: duration)
    }

    /// Lets time pass until an instant, which must not be in the past. Resumes the sleepers that are due on the way, in
    /// the order in which they are due, those that are due at the same time in the order of their arrival, and shows
    /// each deadline as ``now`` meanwhile. They go on concurrently: what they do is not waited for.
    package func advance(to instant: Instant) {
        precondition(instant >= now, "A clock does not go back from \(now) to \(instant).")
        while let sleeper = next(until: instant) { sleeper.continuation.resume(returning: true) }
    }

    /// Returns the next sleeper that is due, at its time; without one, the time is that instant.
    private func next(until instant: Instant) -> Sleeper? {
        state.change { state in
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
    package func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        let id = state.change { $0.makeID() }
        let isDue = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                add(Sleeper(id: id, deadline: deadline, continuation: continuation))
            }
        } onCancel: {
            let sleeper = state.change { state -> Sleeper? in
                if let index = state.sleepers.firstIndex(where: { $0.id == id }) {
                    return state.sleepers.remove(at: index)
                }
                state.cancelledBeforehand.insert(id)
                return nil
            }
            sleeper?.continuation.resume(returning: false)
        }
        state.change { _ = $0.cancelledBeforehand.remove(id) }
        if !isDue { throw CancellationError() }
    }

    private func add(_ sleeper: Sleeper) {
        let (answer, satisfied) = state.change { state -> (Bool?, [Watcher]) in
            if state.cancelledBeforehand.contains(sleeper.id) { return (false, []) }
            if sleeper.deadline <= state.now { return (true, []) }
            let index = state.sleepers.firstIndex { $0.deadline > sleeper.deadline } ?? state.sleepers.endIndex
            state.sleepers.insert(sleeper, at: index)
            let count = state.sleepers.count
            defer { state.watchers.removeAll { $0.count <= count } }
            return (nil, state.watchers.filter { $0.count <= count })
        }
        if let answer { sleeper.continuation.resume(returning: answer) }
        for watcher in satisfied { watcher.continuation.resume() }
    }

    /// Suspends until tasks sleep, so that advancing the clock reaches them, or until the waiting task is cancelled.
    ///
    /// - Parameter count: How many have to sleep at least.
    package func sleepers(atLeast count: Int = 1) async {
        let id = state.change { $0.makeID() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSatisfied = state.change { state in
                    if state.sleepers.count >= count || state.cancelledBeforehand.contains(id) { return true }
                    state.watchers.append(Watcher(id: id, count: count, continuation: continuation))
                    return false
                }
                if isSatisfied { continuation.resume() }
            }
        } onCancel: {
            let watcher = state.change { state -> Watcher? in
                if let index = state.watchers.firstIndex(where: { $0.id == id }) {
                    return state.watchers.remove(at: index)
                }
                state.cancelledBeforehand.insert(id)
                return nil
            }
            watcher?.continuation.resume()
        }
        state.change { _ = $0.cancelledBeforehand.remove(id) }
    }

    /// Expects that soon no task sleeps.
    package func expectNoSleepers(_ location: SourceLocation = #_sourceLocation) async {
        await eventually("the clock is slept on until \(deadlines)", location) { deadlines.isEmpty }
    }
}
