import Dispatch
import Foundation

extension QualityOfService {
    /// What libdispatch and the Swift runtime have for the quality of service. The default leaves libdispatch to take that
    /// of the thread that enqueues the work.
    fileprivate var equivalents: (dispatch: DispatchQoS, priority: TaskPriority) {
        switch self {
        case .userInteractive: (.userInteractive, .high)
        case .userInitiated: (.userInitiated, .userInitiated)
        case .utility: (.utility, .utility)
        case .background: (.background, .background)
        case .default: (.unspecified, .medium)
        // Of a future system.
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
