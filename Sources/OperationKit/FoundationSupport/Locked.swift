import Foundation

/// A value behind a lock.
///
/// An owner whose only mutable state is of this type is `Sendable` without `@unchecked`. `Synchronization.Mutex` would do
/// the same, from macOS 15 on. An `NSLock` cannot be inherited from on Linux, and would be one more object for each value.
@safe final class Locked<Value: Sendable>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    // The lock guarantees exclusive access; skip the run-time checks.
    @exclusivity(unchecked) private var value: Value

    init(_ value: Value) {
        unsafe self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        let status = unsafe Locked.initialize(mutex)
        precondition(status == 0, "OperationKit: a lock cannot be created")
    }

    /// The lock is held for very short times, so a thread that meets another one tries again before it sleeps, where the
    /// system has such a mutex: two threads that take turns would otherwise be woken up by each other all the time.
    private static func initialize(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 {
        #if canImport(Glibc)
        var attributes = pthread_mutexattr_t()
        unsafe pthread_mutexattr_init(&attributes)
        unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        defer { unsafe pthread_mutexattr_destroy(&attributes) }
        return unsafe pthread_mutex_init(mutex, &attributes)
        #else
        return unsafe pthread_mutex_init(mutex, nil)
        #endif
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deinitialize(count: 1)
        unsafe mutex.deallocate()
    }

    /// Reads and changes the value with the lock held.
    ///
    /// `body` must not call out, nor release an object whose deinitializer could run arbitrary code: return what was
    /// replaced, to release it after unlocking.
    func withLock<Answer>(_ body: (inout Value) throws -> Answer) rethrows -> Answer {
        #if DEBUG
        let observer = SchedulingProbe.observer
        observer?.reached(.locking)
        #endif
        unsafe pthread_mutex_lock(mutex)
        defer {
            unsafe pthread_mutex_unlock(mutex)
            #if DEBUG
            observer?.reached(.unlocked)
            #endif
        }
        return try unsafe body(&value)
    }
}

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
