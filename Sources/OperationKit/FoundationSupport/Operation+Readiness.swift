import Foundation

extension Operation {
    /// Makes sure that the queue to which the operation was just added knows whether it is ready.
    ///
    /// On Linux a queue remembers `isReady` when an operation is added. A dependency that finishes at that moment may
    /// have its news overwritten by the older answer, and the operation would never start. The second look is for a
    /// dependency that finishes during the first one.
    func announceReadiness() {
        #if !canImport(ObjectiveC)
        didChangeValue(forKey: "isReady")
        if isReady { didChangeValue(forKey: "isReady") }
        #endif
    }
}
