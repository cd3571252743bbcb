#if canImport(os)
public import OperationKit
public import os

/// Shows operations in Instruments: an interval from the start to the end of each, and points for what happens between.
///
/// Add one to an operation, for all that is inside it, with ``/OperationKit/AsyncOperation/addObserver(_:)``, or to all of the process with
/// ``/OperationKit/AsyncOperation/addGlobalObserver(_:)``.
///
/// There are signposts only while a tool records them. Operations that started before have no interval. The names of operations, and
/// errors, are written as public texts. Available on Apple platforms.
public final class OperationSignposts: OperationObserver {
    private let signposter: OSSignposter
    /// The operations whose interval has begun. An end without a beginning would be a mistake.
    private let begun = Locked<Set<OperationID>>([])

    /// Creates an observer.
    ///
    /// - Parameter signposter: What writes the signposts: by default, one for the subsystem `OperationKit` and the category
    ///   `Operations`.
    public init(_ signposter: OSSignposter = OSSignposter(subsystem: "OperationKit", category: "Operations")) {
        self.signposter = signposter
    }

    /// Writes a signpost for the event. Called by the operations, as ``/OperationKit/OperationObserver`` says.
    public func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        let id = OSSignpostID(event.operation.number)
        let (name, text) = (event.name, event.kind.description)
        switch event.kind {
        case .started:
            guard signposter.isEnabled else { return }
            _ = begun.withLock { $0.insert(event.operation) }
            _ = signposter.beginInterval("Operation", id: id, "\(name, privacy: .public)")
        case .finished:
            guard begun.withLock({ $0.remove(event.operation) }) != nil else { return }
            signposter.endInterval("Operation", .beginState(id: id), "\(text, privacy: .public)")
        default:
            signposter.emitEvent("Event", id: id, "\(name, privacy: .public) \(text, privacy: .public)")
        }
    }
}
#endif
