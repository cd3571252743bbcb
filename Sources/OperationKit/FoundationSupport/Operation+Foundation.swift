import Dispatch
import Foundation

extension Operation {
    /// Makes sure that the queue to which the operation was just added knows whether it is ready.
    ///
    /// On Linux, a queue remembers `isReady` when an operation is added. If a dependency finishes at that moment, the
    /// queue may overwrite the newer answer with the older one, and never start the operation. The second call is for a
    /// dependency that finishes during the first one.
    func announceReadiness() {
        #if !canImport(ObjectiveC)
        didChangeValue(forKey: "isReady")
        if isReady { didChangeValue(forKey: "isReady") }
        #endif
    }
}

extension QualityOfService {
    /// The equivalents in libdispatch and in Swift concurrency. With `.unspecified`, libdispatch uses the quality of
    /// service of the thread that enqueues the work.
    var equivalents: (dispatch: DispatchQoS, priority: TaskPriority) {
        switch self {
        case .userInteractive: (.userInteractive, .high)
        case .userInitiated: (.userInitiated, .userInitiated)
        case .utility: (.utility, .utility)
        case .background: (.background, .background)
        // Also cases of future systems.
        default: (.unspecified, .medium)
        }
    }
}
