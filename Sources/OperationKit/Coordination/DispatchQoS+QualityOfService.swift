import Dispatch
import Foundation

extension DispatchQoS {
    /// The class that stands for a quality of service. The default leaves it to whoever begins the work.
    init(_ qualityOfService: QualityOfService) {
        switch qualityOfService {
        case .userInteractive: self = .userInteractive
        case .userInitiated: self = .userInitiated
        case .utility: self = .utility
        case .background: self = .background
        case .default: self = .unspecified
        // Of a future system.
        @unknown default: self = .unspecified
        }
    }
}
