import Dispatch
import Foundation

/// The places at which a thread may lose the processor to another one, for tests that explore the orders of events:
/// before it takes a lock of the library, after it has released one, and around each announcement of a change. Debug
/// builds only: in others there is never an observer, and nothing of this is left.
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
        /// The handler of a task's cancellation has begun, or ended. The runtime holds a lock of its own meanwhile.
        case handlerBegan, handlerEnded
    }

    protocol Observer: AnyObject {
        /// Whether the observed thread heeds what other threads count for the whole process, as every other thread does. A test
        /// that explores or counts what a thread does is not disturbed by what other tests observe and hold.
        var heedsOthers: Bool { get }
        /// Called on the observed thread, which stays there as long as the observer likes. Other locks may be held where
        /// one is taken inside another.
        func reached(_ place: Place)
        /// Creates the private queue of a composite that is created on the observed thread.
        func makeQueue() -> CompositeQueue
        /// Runs what the observed thread leaves to another one: the work of a collection, or a cancellation.
        func runWorker(_ work: @escaping DedicatedThreads.Job)
    }

    #if DEBUG
    private static let key = makeThreadKey()

    /// The observer of the current thread.
    static var observer: (any Observer)? {
        guard let pointer = unsafe pthread_getspecific(key) else { return nil }
        return unsafe pointer.assumingMemoryBound(to: (any Observer).self).pointee
    }

    /// Lets an observer see what the current thread does while the body runs.
    static func observed<Answer>(by observer: any Observer, _ body: () throws -> Answer) rethrows -> Answer {
        var observer = observer
        return try unsafe withUnsafeMutablePointer(to: &observer) { pointer in
            let previous = unsafe pthread_getspecific(key)
            unsafe pthread_setspecific(key, pointer)
            defer { unsafe pthread_setspecific(key, previous) }
            return try body()
        }
    }
    #else
    @inline(__always) static var observer: (any Observer)? { nil }
    #endif

    /// Whether the current thread heeds what other threads count for the whole process.
    static var heedsOthers: Bool { observer?.heedsOthers ?? true }

    /// The current thread is at a place.
    @inline(__always)
    static func reach(_ place: @autoclosure () -> Place) {
        if let observer { observer.reached(place()) }
    }
}

extension DispatchQueue {
    /// `async(qos:execute:)`, unless a probe takes the work.
    func performAsync(qos: DispatchQoS = .unspecified, _ work: @escaping DedicatedThreads.Job) {
        if let observer = SchedulingProbe.observer { return observer.runWorker(work) }
        async(qos: qos, execute: work)
    }
}

extension DedicatedThreads {
    /// `perform(_:)`, unless a probe takes the job.
    func performAsync(_ job: @escaping Job) {
        if let observer = SchedulingProbe.observer { return observer.runWorker(job) }
        perform(job)
    }
}

extension Operation {
    /// `willChangeValue(forKey:)`, after a place.
    @inline(__always)
    func willChange(_ key: String) {
        SchedulingProbe.reach(.willChange(self, key))
        willChangeValue(forKey: key)
    }

    /// `didChangeValue(forKey:)`, between two places.
    @inline(__always)
    func didChange(_ key: String) {
        SchedulingProbe.reach(.didChange(self, key))
        didChangeValue(forKey: key)
        SchedulingProbe.reach(.told)
    }
}
