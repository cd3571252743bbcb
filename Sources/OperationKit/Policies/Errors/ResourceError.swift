public import Foundation

/// Why an operation did not get the resources that it requires, such as exclusive access.
public enum ResourceError: Error, Equatable {
    /// As many operations wait for the resource already as may. Code 1.
    case tooManyWaiting(operation: String, resource: String, maximum: Int)
    /// A composite around the operation, which ends after it, has the resource. Code 2.
    case heldByComposite(operation: String, resource: String, composite: String)
    /// The resource did not become available in time. `holders` are the names of the operations that held it. Code 3.
    case timedOut(operation: String, resource: String, duration: Duration, holders: [String])
}

extension ResourceError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .tooManyWaiting: 1
        case .heldByComposite: 2
        case .timedOut: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .tooManyWaiting(let operation, let resource, let maximum):
            "The operation “\(operation)” did not run, because " + reason(resource: resource, maximum: maximum)
        case .heldByComposite(let operation, let resource, let composite):
            "The operation “\(operation)” did not run, because “\(composite)” around it has “\(resource)” until it has ended."
        case .timedOut(let operation, let resource, let duration, let holders):
            "The operation “\(operation)” did not run, because “\(resource)” was not available within \(duration)"
                + (holders.isEmpty ? "." : ": it is held by \(list(holders)).")
        }
    }

    private func reason(resource: String, maximum: Int) -> String {
        switch maximum {
        case 0: "“\(resource)” was not available, and no operation may wait for it."
        case 1: "1 operation waits for “\(resource)” already, and no more may."
        default: "\(maximum) operations wait for “\(resource)” already, and no more may."
        }
    }

    private func list(_ names: [String]) -> String {
        let names = names.map { "“\($0)”" }
        guard let last = names.last, names.count > 1 else { return names.joined() }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }
}
