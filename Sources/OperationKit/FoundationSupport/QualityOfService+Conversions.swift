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

extension DispatchQueue {
    /// A new queue, for what has to be done soon although operations block all threads of the global queues. Those have no
    /// more threads than a limit; a serial queue of its own gets another one.
    static func unoccupied() -> DispatchQueue {
        DispatchQueue(label: "OperationKit.unoccupied", qos: .userInitiated)
    }
}
