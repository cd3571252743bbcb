import Foundation

/// A collection operation that works item by item. Conform to ``ParallelItemOperation`` or
/// ``SequentialItemOperation``.
public protocol ItemOperation<CollectionType>: CollectionOperation {
    // Stated again where the method is from which it is inferred. The strategies must not state it: they have no such
    // method, and the inference would fail.
    associatedtype CollectionType

    /// Takes the outcome of an item: its error, or `nil` for success.
    ///
    /// May be called from any thread, at once or later. Only the first call for an item counts. It has to be called on
    /// every path, or the run never ends.
    typealias ItemCompletion = @Sendable (_ error: (any Error)?) -> Void

    /// Performs the operation on one item.
    ///
    /// Called once for each item, on a thread of a dispatch queue, never from inside the completion of another item. An
    /// item is in flight until this method has returned and the completion has been called.
    ///
    /// - Parameters:
    ///   - item: The item.
    ///   - completion: Has to be called when the work is done.
    func performOperation(onItem item: CollectionType, completion: @escaping ItemCompletion)
}

/// An item operation whose method is an `async` function that throws.
///
/// Conform to it in addition to a strategy, and implement the `async` method instead of the one with a completion:
///
/// ```swift
/// final class Thumbnails: ParallelItemOperation, AsyncItemOperation {
///     func performOperation(onItem name: String) async throws {
///         try await Task.sleep(nanoseconds: 1_000_000)
///         if name.isEmpty { throw CocoaError(.fileNoSuchFile) }
///     }
/// }
///
/// let errors = await Thumbnails().performOperation(on: ["cat.jpg", ""])
/// assert(errors[0] == nil && errors[1] != nil)
/// ```
///
/// Each item runs in a task of its own, which is cancelled when the run is. Cancellation stays a request: an item that
/// does not look at it ends when its work does.
public protocol AsyncItemOperation<CollectionType>: ItemOperation {
    associatedtype CollectionType

    /// Performs the operation on one item: returns for success, throws for failure.
    ///
    /// - Parameter item: The item.
    func performOperation(onItem item: CollectionType) async throws
}

extension AsyncItemOperation {
    /// Performs the operation on one item in a task of its own, and hands over what it throws.
    public func performOperation(onItem item: CollectionType, completion: @escaping ItemCompletion) {
        let performer = Performer(self)
        RunningTasks().run(0, { try await performer.object.performOperation(onItem: item) }, completion: completion)
    }
}

/// An item operation that works on several items at once.
///
/// Items begin in the order of the collection. As many are in flight as ``maxConcurrentOperationCount`` allows.
public protocol ParallelItemOperation<CollectionType>: ItemOperation {
    /// How many items may be in flight at once. The default is the number of active processors, which suits items that
    /// compute; for items that mostly wait, set more.
    ///
    /// Less than 1 is reported as ``CoordinationError/invalidLimit(type:maxConcurrentOperationCount:)``. Read once for
    /// each run.
    var maxConcurrentOperationCount: Int { get }
}

/// An item operation that works on one item after the other, in the order of the collection.
public protocol SequentialItemOperation<CollectionType>: ItemOperation {}

extension ParallelItemOperation {
    /// The number of active processors.
    public var maxConcurrentOperationCount: Int { ProcessInfo.processInfo.activeProcessorCount }

    /// Performs the operation on all items, several at once.
    public func performOperation(on collection: [CollectionType], completion: @escaping Completion) {
        plan(for: collection, limit: maxConcurrentOperationCount).run(completion: completion)
    }

    /// A run over a collection as an operation, to be put on a queue, into a compound or into a chain.
    public func operation() -> CollectionRun<CollectionType> {
        let performer = Performer(self)
        return CollectionRun(name: displayName) {
            performer.object.plan(for: $0, limit: performer.object.maxConcurrentOperationCount)
        }
    }
}

extension SequentialItemOperation {
    /// Performs the operation on all items, one after the other.
    public func performOperation(on collection: [CollectionType], completion: @escaping Completion) {
        plan(for: collection, limit: 1).run(completion: completion)
    }

    /// A run over a collection as an operation, to be put on a queue, into a compound or into a chain.
    public func operation() -> CollectionRun<CollectionType> {
        let performer = Performer(self)
        return CollectionRun(name: displayName) { performer.object.plan(for: $0, limit: 1) }
    }
}

extension ItemOperation {
    func plan(for items: [CollectionType], limit: Int) -> CollectionPlan {
        let performer = Performer(self)
        var perform: (@Sendable (Int) async throws -> Void)?
        if let operation = self as? any AsyncItemOperation<CollectionType> {
            let performer = Performer(operation)
            perform = { try await performer.object.performOperation(onItem: items[$0]) }
        }
        return plan(
            count: items.count, limit: limit, word: "item",
            begin: { performer.object.performOperation(onItem: items[$0], completion: $1) }, perform: perform)
    }
}
