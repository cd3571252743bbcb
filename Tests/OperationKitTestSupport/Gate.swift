package import Foundation
package import Testing

extension Trait where Self == TimeLimitTrait {
    /// What hangs fails with its name. Far beyond what any test takes, also with a sanitizer on a busy machine.
    package static var hangGuard: Self { .timeLimit(.minutes(10)) }
}

/// How long a wait that blocks a thread, or that cannot be cancelled, lasts at most before it is reported as a failure.
package let hangTimeout: TimeInterval = 200

/// A gate that is opened once and stays open: holds work until the test lets it go, and tells the test how far the work
/// is.
///
/// Code on a thread of its own or in an operation blocks in ``pass(_:)``, asynchronous code suspends in ``opened()``.
package final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isPassable = false
    private var waiting: [ObjectIdentifier: CheckedContinuation<Void, Never>] = [:]

    package init() {}

    package var isOpen: Bool { condition.withLock { isPassable } }

    /// Lets everybody through, now and later.
    package func open() {
        let woken = condition.withLock {
            isPassable = true
            condition.broadcast()
            defer { waiting = [:] }
            return waiting.values
        }
        for continuation in woken { continuation.resume() }
    }

    /// Blocks the calling thread until the gate is open. Not for asynchronous code: the pool has one thread per core.
    ///
    /// - Returns: Whether the gate was opened in time; otherwise an issue is recorded too.
    @available(*, noasync)
    @discardableResult
    package func pass(_ location: SourceLocation = #_sourceLocation) -> Bool {
        let deadline = Date(timeIntervalSinceNow: hangTimeout)
        let isOpen = condition.withLock {
            while !isPassable { if !condition.wait(until: deadline) { break } }
            return isPassable
        }
        if !isOpen { Issue.record("The gate was not opened.", sourceLocation: location) }
        return isOpen
    }

    /// Suspends until the gate is open, or the task is cancelled.
    package func opened() async {
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
    package func openedDespiteCancellation() async {
        await Task.detached { await self.opened() }.value
    }

    private final class Identity: Sendable {}
}

/// Suspends until the task is cancelled. `Task.sleep` would leave its timer behind, which counts as a leak.
package func cancellation() async throws -> Never {
    let (never, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in never {}
    withExtendedLifetime(continuation) {}
    throw CancellationError()
}
