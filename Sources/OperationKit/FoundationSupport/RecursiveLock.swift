import Foundation

/// Foundation's recursive lock, with the places of ``SchedulingProbe`` before and after.
///
/// For state that is not one value, which ``Locked`` requires: that of an `AsyncOperation` and its subclasses, and that
/// of a `Progress`, part of which Foundation stores.
struct RecursiveLock: Sendable {
    private let lock = NSRecursiveLock()

    /// Calls `body` with the lock held. `body` must not call out.
    @inline(__always)
    func withLock<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        #if DEBUG
        let observer = SchedulingProbe.observer
        observer?.reached(.locking)
        #endif
        lock.lock()
        defer {
            lock.unlock()
            #if DEBUG
            observer?.reached(.unlocked)
            #endif
        }
        return try body()
    }
}
