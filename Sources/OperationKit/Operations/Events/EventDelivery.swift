import Foundation

/// What the current thread delivers to observers.
///
/// An event that is caused inside a method of an observer waits here until that has returned, whatever its operation is, so deliveries
/// are never nested.
@safe final class EventDelivery {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key) { pointer in
            // The type of the argument differs between platforms.
            let box: UnsafeMutableRawPointer? = unsafe pointer
            if let box = unsafe box { unsafe Unmanaged<EventDelivery>.fromOpaque(box).release() }
        }
        precondition(status == 0, "OperationKit: there are no thread-specific values left")
        return key
    }()

    // Only its thread uses it; skip the run-time checks.
    @exclusivity(unchecked) private var isDelivering = false
    @exclusivity(unchecked) private var deferred: [(operation: AsyncOperation, record: ObservationRecord)] = []

    /// That of the current thread, which keeps it until it ends.
    private static var current: EventDelivery {
        if let pointer = unsafe pthread_getspecific(key) {
            return unsafe Unmanaged<EventDelivery>.fromOpaque(pointer).takeUnretainedValue()
        }
        let created = EventDelivery()
        unsafe pthread_setspecific(key, Unmanaged.passRetained(created).toOpaque())
        return created
    }

    /// Delivers the current event of an operation, and those that follow: now, or when the method of an observer that
    /// this thread is calling has returned.
    ///
    /// - Parameters:
    ///   - operation: The operation, whose current event this thread has to deliver.
    ///   - record: The record of the operation.
    ///   - willDefer: Called first if it is delivered later.
    static func deliver(_ operation: AsyncOperation, _ record: ObservationRecord, willDefer: () -> Void = {}) {
        let delivery = current
        if unsafe delivery.isDelivering {
            willDefer()
            unsafe delivery.deferred.append((operation, record))
        } else {
            delivery.run(operation, record)
        }
    }

    private func run(_ operation: AsyncOperation, _ record: ObservationRecord) {
        unsafe isDelivering = true
        operation.deliverEvents(record)
        while unsafe !deferred.isEmpty {
            for (operation, record) in unsafe exchange(&deferred, with: []) { operation.deliverEvents(record) }
        }
        unsafe isDelivering = false
    }
}
