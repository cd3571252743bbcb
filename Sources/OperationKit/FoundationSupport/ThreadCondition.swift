import Dispatch
import Foundation

/// What a thread does that looks at the state of a ``ThreadCondition``.
enum ThreadWait<Answer> {
    case ended(Answer)
    /// Waits for a signal, or for so long.
    case waiting(atMost: Duration)
}

/// A value behind a lock, with a condition that threads of the library wait for. Time is that of a clock that nothing sets.
@safe final class ThreadCondition<Value: Sendable>: Locked<Value>, @unchecked Sendable {
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    override init(_ value: Value) {
        unsafe condition = .allocate(capacity: 1)
        unsafe condition.initialize(to: pthread_cond_t())
        #if canImport(Darwin)
        unsafe pthread_cond_init(condition, nil)
        #else
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
        #endif
        super.init(value)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe condition.deallocate()
    }

    /// Wakes one of the threads that wait.
    func signal() {
        unsafe pthread_cond_signal(condition)
    }

    /// Blocks the current thread until the body ends the wait.
    ///
    /// - Parameter body: Called with the lock held, first of all, and whenever the thread has waited. Is told whether the time
    ///   of the last wait is over.
    /// - Returns: What the body ended the wait with.
    func wait<Answer>(until body: (inout Value, _ isOver: Bool) -> ThreadWait<Answer>) -> Answer {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        var isOver = false
        while true {
            switch unsafe body(&value, isOver) {
            case .ended(let answer): return answer
            case .waiting(let duration): isOver = !waitForSignal(atMost: duration)
            }
        }
    }

    /// - Returns: Whether the time is not over. The thread may have waited for a shorter time even without a signal.
    private func waitForSignal(atMost duration: Duration) -> Bool {
        let (seconds, attoseconds) = max(duration, .zero).components
        // Rounded up: a deadline must not be missed by a moment.
        let nanoseconds = Int((attoseconds + 999_999_999) / 1_000_000_000)
        #if canImport(Darwin)
        let time = (Int(seconds), nanoseconds)
        #else
        // The time of the condition's clock.
        let end = Int(DispatchTime.now().uptimeNanoseconds) + nanoseconds
        let time = (Int(seconds) + end / 1_000_000_000, end % 1_000_000_000)
        #endif
        // Which module declares the members of a `timespec` depends on the imports of other files.
        var limit = unsafe unsafeBitCast(time, to: timespec.self)
        #if canImport(Darwin)
        return unsafe pthread_cond_timedwait_relative_np(condition, mutex, &limit) != ETIMEDOUT
        #else
        return unsafe pthread_cond_timedwait(condition, mutex, &limit) != ETIMEDOUT
        #endif
    }
}

/// Creates a thread that runs a body and ends. Where the system has no thread left, one of Dispatch's runs it.
package func detachThread(_ body: @escaping @Sendable () -> Void) {
    let start = unsafe Unmanaged.passRetained(Reference(body))
    #if canImport(Darwin)
    var thread: pthread_t?
    let status = unsafe pthread_create(
        &thread, nil,
        { pointer in
            pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0)
            unsafe Unmanaged<Reference<DedicatedThreads.Job>>.fromOpaque(pointer).takeRetainedValue().value()
            return nil
        }, start.toOpaque())
    #else
    #if canImport(Musl)
    var thread: pthread_t?
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    unsafe pthread_attr_init(attributes)
    // Otherwise a thread has 128 KiB of stack, and code of users may run on it.
    unsafe pthread_attr_setstacksize(attributes, 1 << 20)
    defer { unsafe attributes.deallocate() }
    #else
    var thread = pthread_t()
    let attributes: UnsafeMutablePointer<pthread_attr_t>? = nil
    #endif
    let status = unsafe pthread_create(
        &thread, attributes,
        { pointer in
            if let pointer = unsafe pointer {
                unsafe Unmanaged<Reference<DedicatedThreads.Job>>.fromOpaque(pointer).takeRetainedValue().value()
            }
            return nil
        }, start.toOpaque())
    #endif
    #if canImport(Darwin) || canImport(Musl)
    if status == 0, let thread = unsafe thread { unsafe pthread_detach(thread) }
    #else
    if status == 0 { pthread_detach(thread) }
    #endif
    if status == 0 { return }
    unsafe start.release()
    DispatchQueue.global().async(execute: body)
}
