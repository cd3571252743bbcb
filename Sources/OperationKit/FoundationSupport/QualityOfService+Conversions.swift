import Dispatch
import Foundation

extension QualityOfService {
    /// The equivalents in libdispatch and in Swift concurrency. With `.unspecified`, libdispatch uses the quality of
    /// service of the thread that enqueues the work.
    fileprivate var equivalents: (dispatch: DispatchQoS, priority: TaskPriority) {
        switch self {
        case .userInteractive: (.userInteractive, .high)
        case .userInitiated: (.userInitiated, .userInitiated)
        case .utility: (.utility, .utility)
        case .background: (.background, .background)
        case .default: (.unspecified, .medium)
        // Cases of future systems.
        @unknown default: (.unspecified, .medium)
        }
    }
}

extension DispatchQoS {
    init(_ qualityOfService: QualityOfService) {
        self = qualityOfService.equivalents.dispatch
    }
}

extension TaskPriority {
    init(_ qualityOfService: QualityOfService) {
        self = qualityOfService.equivalents.priority
    }
}
