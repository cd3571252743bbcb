import Foundation

#if canImport(ObjectiveC)
import COperationSupport
#else
import Synchronization
#endif

/// A value behind a lock.
///
/// An owner whose only mutable state is of this type is `Sendable` without `@unchecked`. `Synchronization.Mutex` would do
/// the same, from macOS 15 on. An `NSLock` cannot be inherited from on Linux, and would be one more object for each value.
@safe package class Locked<Value: Sendable>: @unchecked Sendable {
    final let mutex: UnsafeMutablePointer<pthread_mutex_t>
    // The lock guarantees exclusive access; skip the run-time checks.
    @exclusivity(unchecked) final var value: Value

    package init(_ value: Value) {
        unsafe self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        // The lock is held for very short times, so a thread that meets another one tries again before it sleeps, where the
        // system has such a mutex: two threads that take turns would otherwise be woken up by each other all the time.
        #if canImport(Glibc)
        var attributes = pthread_mutexattr_t()
        unsafe pthread_mutexattr_init(&attributes)
        unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        let status = unsafe pthread_mutex_init(mutex, &attributes)
        unsafe pthread_mutexattr_destroy(&attributes)
        #else
        let status = unsafe pthread_mutex_init(mutex, nil)
        #endif
        precondition(status == 0, "OperationKit: a lock cannot be created")
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
    package final func withLock<Answer>(_ body: (inout Value) throws -> Answer) rethrows -> Answer {
        SchedulingProbe.reach(.locking)
        unsafe pthread_mutex_lock(mutex)
        // A variable, as the optimizer releases what is in none as soon as it is not used: with the lock held, if the caller drops it.
        let answer: Answer
        do {
            answer = try unsafe body(&value)
        } catch {
            unsafe pthread_mutex_unlock(mutex)
            throw error
        }
        unsafe pthread_mutex_unlock(mutex)
        SchedulingProbe.reach(.unlocked)
        return answer
    }
}

/// Foundation's recursive lock, with the places of ``SchedulingProbe`` before and after.
///
/// For state that is not one value, which ``Locked`` requires: that of an `AsyncOperation` and its subclasses, and that
/// of a `Progress`, part of which Foundation stores.
struct RecursiveLock {
    private let lock = NSRecursiveLock()

    /// Calls `body` with the lock held. `body` must not call out.
    @inline(__always)
    func withLock<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        SchedulingProbe.reach(.locking)
        lock.lock()
        // A variable, for the reason that is given above.
        let answer: Answer
        do {
            answer = try body()
        } catch {
            lock.unlock()
            throw error
        }
        lock.unlock()
        SchedulingProbe.reach(.unlocked)
        return answer
    }
}

/// A number that any thread may read and change at any time.
///
/// Every operation reads some of them several times. On Apple platforms, `Synchronization` is there from macOS 15 on, so a few lines of C
/// take its place.
@safe struct AtomicCounter: ~Copyable, @unchecked Sendable {
    #if canImport(ObjectiveC)
    private let number = UnsafeMutablePointer<Int>.allocate(capacity: 1)

    init() { unsafe number.initialize(to: 0) }

    deinit { unsafe number.deallocate() }

    var value: Int { unsafe ok_counter_value(number) }

    /// Changes the number.
    ///
    /// - Returns: The new one.
    @discardableResult
    borrowing func add(_ difference: Int) -> Int {
        unsafe ok_counter_add(number, difference)
    }
    #else
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .acquiring) }

    /// Changes the number.
    ///
    /// - Returns: The new one.
    @discardableResult
    borrowing func add(_ difference: Int) -> Int {
        number.wrappingAdd(difference, ordering: .acquiringAndReleasing).newValue
    }
    #endif
}

/// A value that is shared instead of copied, and fits into a pointer.
package final class Reference<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}

/// A reference that does not keep an object alive.
package struct WeakReference<Object: AnyObject & Sendable>: Sendable {
    package private(set) weak var object: Object?

    package init(_ object: Object) {
        self.object = object
    }
}

/// A value that its owner carries to other threads, although the compiler cannot check that it is safe there.
struct UncheckedSendable<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// A state machine that decides which thread writes a value to a target that may not be written with a lock held.
///
/// One thread at a time writes. A value that changes meanwhile is left to that thread. So the target never goes back to an
/// older value, and has the latest one in the end; values in between may be skipped.
///
/// It is part of the state of its owner, whose lock guards it:
///
/// ```
/// var next = state.withLock { $0.writer.changed(to: value) }
/// while let value = next {
///     target.value = value
///     next = state.withLock { $0.writer.wrote(value) }
/// }
/// ```
///
/// A thread whose value is left to another one goes on before the target has it. What must not happen before that is left to
/// that thread, too: see ``isWriting``.
struct CoalescingWriter<Value: Equatable & Sendable> {
    /// The value that the target has, or is going to have.
    private(set) var latest: Value
    /// Whether a thread is about to write.
    private(set) var isWriting = false

    /// - Parameter value: What the target has.
    init(_ value: Value) {
        latest = value
    }

    /// The target is to have another value.
    ///
    /// - Returns: The value, if the caller has to write it.
    mutating func changed(to value: Value) -> Value? {
        if value == latest { return nil }
        latest = value
        if isWriting { return nil }
        isWriting = true
        return value
    }

    /// The caller has written a value.
    ///
    /// - Returns: The value that it has to write next.
    mutating func wrote(_ value: Value) -> Value? {
        isWriting = value != latest
        return isWriting ? latest : nil
    }
}

/// Makes a key for a value of each thread.
func makeThreadKey() -> pthread_key_t {
    var key = pthread_key_t()
    let status = unsafe pthread_key_create(&key, nil)
    precondition(status == 0, "OperationKit: there are no thread-specific values left")
    return key
}
