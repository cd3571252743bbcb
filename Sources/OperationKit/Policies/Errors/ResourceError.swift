public import Foundation

/// Why an operation did not get the resources that it requires, such as exclusive access.
public enum ResourceError: Error, Equatable {
    /// As many operations wait for the resource already as may. Code 1.
    case tooManyWaiting(operation: String, resource: String, maximum: Int)
    /// Operations would wait for each other for good. `waits` has each of them, beginning with this one: each waits for what an
    /// operation around the next one holds, and the last one for what an operation around this one does. Code 2.
    case cycle(operation: String, waits: [ResourceWait])
    /// The resource did not become available in time. `holders` are the names of the operations that held it. Code 3.
    case timedOut(operation: String, resource: String, duration: Duration, holders: [String])
}

/// An operation that waits for a resource that another operation holds.
public struct ResourceWait: Sendable, Equatable {
    /// The name of the operation that waits, or else its type.
    public let operation: String
    /// The name of the resource.
    public let resource: String
    /// The name of the operation that holds the resource.
    public let blocker: String

    /// Creates the description of a wait.
    ///
    /// - Parameters:
    ///   - operation: The name of the operation that waits.
    ///   - resource: The name of the resource.
    ///   - blocker: The name of the operation that holds it.
    public init(operation: String, resource: String, blocker: String) {
        self.operation = operation
        self.resource = resource
        self.blocker = blocker
    }
}

extension ResourceError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .tooManyWaiting: 1
        case .cycle: 2
        case .timedOut: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .tooManyWaiting(let operation, let resource, let maximum):
            "The operation “\(operation)” did not run, because " + reason(resource: resource, maximum: maximum)
        case .cycle(let operation, let waits):
            "The operation “\(operation)” did not run, because operations would wait for each other in a cycle: "
                + text(of: waits) + "."
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

    /// A composite that holds what another operation waits for waits for the next one, which is inside it.
    private func text(of waits: [ResourceWait]) -> String {
        zip(waits, waits.dropFirst() + waits.prefix(1)).map { wait, next in
            "“\(wait.operation)” waits for “\(wait.resource)”, held by “\(wait.blocker)”"
                + (wait.blocker == next.operation ? "" : ", which waits for “\(next.operation)”")
        }.joined(separator: "; ")
    }

    private func list(_ names: [String]) -> String {
        let names = names.map { "“\($0)”" }
        guard let last = names.last, names.count > 1 else { return names.joined() }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }
}
