import Foundation

/// A gate that is opened once and stays open: holds work until the test lets it go, and tells the test how far the work
/// is.
///
/// Code on a thread of its own or in an operation blocks in ``pass(within:)``, asynchronous code suspends in ``opened()``.
public final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isPassable = false
    private var waiting: [ObjectIdentifier: CheckedContinuation<Void, Never>] = [:]

    /// Creates a gate that is closed.
    public init() {}

    /// Whether the gate was opened.
    public var isOpen: Bool { condition.withLock { isPassable } }

    /// Lets through what waits, and what comes later.
    public func open() {
        let woken = condition.withLock {
            isPassable = true
            condition.broadcast()
            defer { waiting = [:] }
            return waiting.values
        }
        for continuation in woken { continuation.resume() }
    }

    /// Blocks the calling thread until the gate is open, or a time has passed. Not for asynchronous code, which has few threads.
    ///
    /// - Parameter limit: How long to wait at most.
    /// - Returns: Whether the gate is open.
    @available(*, noasync, message: "Suspend in opened() instead.")
    @discardableResult
    public func pass(within limit: Duration) -> Bool { pass(within: limit, until: \.fromNow) }

    /// Waits again when a date has come before the time has passed: the clock of dates may be set forward.
    @available(*, noasync)
    func pass(within limit: Duration, until date: (Duration) -> Date) -> Bool {
        let began = ContinuousClock.now
        return condition.withLock {
            while !isPassable {
                let passed = began.duration(to: .now)
                if passed >= limit { break }
                _ = condition.wait(until: date(limit - passed))
            }
            return isPassable
        }
    }

    /// Suspends until the gate is open, or the task is cancelled.
    public func opened() async {
        let identity = Identity()
        let id = ObjectIdentifier(identity)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mayPass = condition.withLock {
                    if isPassable || Task.isCancelled { return true }
                    waiting[id] = continuation
                    return false
                }
                if mayPass { continuation.resume() }
            }
        } onCancel: {
            condition.withLock { waiting.removeValue(forKey: id) }?.resume()
        }
        withExtendedLifetime(identity) {}
    }

    /// Suspends until the gate is open, also if the task is cancelled.
    public func openedDespiteCancellation() async {
        await Task.detached { await self.opened() }.value
    }

    private final class Identity: Sendable {}
}

extension Duration {
    /// The date after the duration. Foundation traps when it waits for one after the year 2262.
    var fromNow: Date { Date(timeIntervalSinceNow: min(self / .seconds(1), 3_155_760_000)) }
}
