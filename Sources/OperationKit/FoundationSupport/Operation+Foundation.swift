import Dispatch
import Foundation

/// An operation that says how messages call it if it has no name.
protocol TitledOperation: Operation {
    var title: String { get }
}

extension Operation {
    /// The name of the operation in messages: its own, or its type. Where the library has made the operation, what it
    /// was made from takes the place of the type.
    var displayName: String {
        ownName ?? fallbackName
    }

    /// The name of a child in messages: its own, or its type and index.
    func displayName(at index: Int) -> String {
        ownName ?? "\(fallbackName) \(index)"
    }

    /// The name that the operation was given, if it says something.
    var ownName: String? {
        guard let name, !name.isEmpty else { return nil }
        return name
    }

    private var fallbackName: String {
        (self as? any TitledOperation)?.title ?? typeName(of: type(of: self))
    }
}

extension OperationQueue {
    /// The name of the queue in messages: its own, or its type.
    var displayName: String {
        ownName ?? "OperationQueue"
    }

    /// The name that the queue was given. Those that Foundation gives are addresses.
    var ownName: String? {
        guard let name, !name.isEmpty, !name.hasPrefix("NSOperationQueue ") else { return nil }
        return name
    }
}

/// What types are called in messages. Writing that down takes as long as the whole life of an operation, so it is done once for
/// each type.
private let typeNames = Locked<[ObjectIdentifier: String]>([:])

/// The name of a type, as `String(describing:)` writes it.
func typeName(of type: Any.Type) -> String {
    typeNames.withLock { names in
        if let name = names[ObjectIdentifier(type)] { return name }
        // No code of a user's is called for a type.
        let name = String(describing: type)
        names[ObjectIdentifier(type)] = name
        return name
    }
}

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

/// Holds a completion block until it is called, so that no operation is kept alive by its own block afterward.
///
/// Foundation is given a closure that fires the relay. It keeps that closure on Linux, but the relay is empty by then.
final class CompletionBlockRelay: Sendable {
    private let state = Locked<(block: (@Sendable () -> Void)?, hasFired: Bool)>((nil, false))

    /// The block. One that is set when the relay has fired comes too late, and is dropped.
    var block: (@Sendable () -> Void)? {
        get { state.withLock { $0.block } }
        set {
            // Release the old block after unlocking; its deinitializers may run arbitrary code.
            let previous = state.withLock { state in
                state.hasFired ? newValue : exchange(&state.block, with: newValue)
            }
            withExtendedLifetime(previous) {}
        }
    }

    /// Calls the block, if there is one.
    func fire() {
        let block = state.withLock { state in
            state.hasFired = true
            return state.block.take()
        }
        block?()
    }
}
