import Dispatch
import Foundation

#if DEBUG
/// The places at which a thread may lose the processor to another one, for tests that explore the orders of events:
/// before it takes a lock of the library, after it has released one, and around each announcement of a change. Debug
/// builds only.
///
/// A test observes the threads that it has made itself, so tests that run at the same time do not disturb each other.
/// For every other thread, a place costs one look at a thread-specific value. What happens between two places is one
/// step for other threads. In Foundation and in code of users there are no places, except for those that a test adds.
enum SchedulingProbe {
    enum Place {
        case locking, unlocked
        case willChange(Operation, String)
        /// Foundation is about to be told, and may take locks of its own until ``told``.
        case didChange(Operation, String)
        case told
    }

    protocol Observer: AnyObject {
        /// Called on the observed thread, which stays there as long as the observer likes. Other locks may be held where
        /// one is taken inside another.
        func reached(_ place: Place)
        /// Creates the private queue of a composite that is created on the observed thread.
        func makeQueue() -> CompositeQueue
        /// Runs what the observed thread leaves to another one: the work of a collection, or a cancellation.
        func runWorker(_ work: @escaping @Sendable () -> Void)
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key, nil)
        precondition(status == 0, "OperationKit: there are no thread-specific values left")
        return key
    }()

    /// The observer of the current thread.
    static var observer: (any Observer)? {
        guard let pointer = unsafe pthread_getspecific(key) else { return nil }
        return unsafe Unmanaged<Box>.fromOpaque(pointer).takeUnretainedValue().observer
    }

    /// Lets an observer see what the current thread does while the body runs.
    static func observed<Answer>(by observer: any Observer, _ body: () throws -> Answer) rethrows -> Answer {
        let box = Box(observer)
        let previous = unsafe pthread_getspecific(key)
        unsafe pthread_setspecific(key, Unmanaged.passUnretained(box).toOpaque())
        defer {
            unsafe pthread_setspecific(key, previous)
            withExtendedLifetime(box) {}
        }
        return try body()
    }

    /// A protocol's value does not fit into a pointer.
    private final class Box {
        let observer: any Observer
        init(_ observer: any Observer) { self.observer = observer }
    }
}
#endif

extension CompositeQueue {
    /// The queue of a probe on the current thread, if there is one.
    @inline(__always)
    static func probed(limit: Int) -> CompositeQueue? {
        #if DEBUG
        guard let queue = SchedulingProbe.observer?.makeQueue() else { return nil }
        queue.childSettings = (limit, false)
        return queue
        #else
        return nil
        #endif
    }
}

extension DispatchQueue {
    /// `async(qos:execute:)`, unless a probe takes the work.
    @inline(__always)
    func performAsync(qos: DispatchQoS = .unspecified, _ work: @escaping @Sendable () -> Void) {
        #if DEBUG
        if let observer = SchedulingProbe.observer { return observer.runWorker(work) }
        #endif
        async(qos: qos, execute: work)
    }
}

extension DedicatedThreads {
    /// `perform(_:)`, unless a probe takes the job.
    @inline(__always)
    func performAsync(_ job: @escaping @Sendable () -> Void) {
        #if DEBUG
        if let observer = SchedulingProbe.observer { return observer.runWorker(job) }
        #endif
        perform(job)
    }
}
