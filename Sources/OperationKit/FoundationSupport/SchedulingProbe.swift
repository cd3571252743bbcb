import Dispatch
import Foundation

// Where another thread can come in between, for tests that try every order of events. Nothing of it is in a release
// build.

#if DEBUG
/// The places at which a thread may lose the processor to another one: before it takes a lock of the library, after it
/// has released one, and around each announcement of a change.
///
/// A test observes the threads that it has made itself, so tests that run at the same time do not disturb each other.
/// For every other thread a place costs one look at a thread-specific value. What happens between two places is one step
/// as far as other threads can tell. In calls of Foundation, and of the code of others, there are more places, of which
/// only those can be tried that a test makes itself.
enum Preemption {
    enum Place {
        case locking, unlocked
        case willChange(Operation, String)
        /// Foundation is about to be told, and may take locks of its own until ``told``.
        case didChange(Operation, String)
        case told
    }

    protocol Observer: AnyObject {
        /// Called on the observed thread, which stays there as long as it likes. Other locks may be held where
        /// `withLock` is nested.
        func reached(_ place: Place)
        /// The private queue of a composite that is created on the observed thread.
        func makeQueue() -> OperationQueue
        /// Runs what the observed thread leaves to another one: the work of a collection, or a cancellation.
        func runWorker(_ work: @escaping @Sendable () -> Void)
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key, nil)
        precondition(status == 0, "OperationKit: there are no thread-specific values left")
        return key
    }()

    /// Who observes the current thread.
    static var observer: (any Observer)? {
        guard let pointer = unsafe pthread_getspecific(key) else { return nil }
        return unsafe Unmanaged<Box>.fromOpaque(pointer).takeUnretainedValue().observer
    }

    /// Has the current thread observed while the body runs.
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

extension NSLocking {
    /// Foundation's method of this name, between two places. The library's calls come here: a member of this module
    /// shadows that of an imported one with the same type, and on Apple platforms Foundation's is disfavored, too.
    func withLock<Answer>(_ body: () throws -> Answer) rethrows -> Answer {
        let observer = Preemption.observer
        observer?.reached(.locking)
        lock()
        defer {
            unlock()
            observer?.reached(.unlocked)
        }
        return try body()
    }
}
#endif

extension AsyncOperation {
    /// `willChangeValue(forKey:)`, after a place.
    @inline(__always)
    final func willChange(_ key: String) {
        #if DEBUG
        Preemption.observer?.reached(.willChange(self, key))
        #endif
        willChangeValue(forKey: key)
    }

    /// `didChangeValue(forKey:)`, between two places.
    @inline(__always)
    final func didChange(_ key: String) {
        #if DEBUG
        Preemption.observer?.reached(.didChange(self, key))
        #endif
        didChangeValue(forKey: key)
        #if DEBUG
        Preemption.observer?.reached(.told)
        #endif
    }
}

extension OperationQueue {
    /// The private queue of a composite.
    @inline(__always)
    static func ofComposite() -> OperationQueue {
        #if DEBUG
        if let observer = Preemption.observer { return observer.makeQueue() }
        #endif
        return OperationQueue()
    }
}

extension DispatchQueue {
    /// Has another thread do the work.
    @inline(__always)
    func sendForWorker(qos: DispatchQoS = .unspecified, _ work: @escaping @Sendable () -> Void) {
        #if DEBUG
        if let observer = Preemption.observer { return observer.runWorker(work) }
        #endif
        async(qos: qos, execute: work)
    }
}
