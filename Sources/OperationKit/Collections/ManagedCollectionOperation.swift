/// A collection operation that the library runs, item by item or batch by batch.
///
/// Don't conform to this protocol yourself: the four protocols with a strategy bring it along. It is where the forms of a
/// run are implemented, once for all of them.
public protocol ManagedCollectionOperation<CollectionType>: CollectionOperation {}

extension ManagedCollectionOperation {
    /// Performs the operation on all items of a collection by the strategy of the type.
    ///
    /// - Parameters:
    ///   - collection: The items.
    ///   - completion: Called once, as ``CollectionOperation/performOperation(on:completion:)`` says.
    public func performOperation(on collection: [CollectionType], completion: @escaping Completion) {
        do throws(CoordinationError) {
            CollectionDriver(try CollectionStrategy(of: self).units(of: collection), completion: completion).start()
        } catch {
            completion([error])
        }
    }

    /// Creates an operation that is a run over a collection, by the strategy of the type.
    ///
    /// - Returns: An operation whose input is the collection.
    public func makeOperation() -> CollectionRun<CollectionType> {
        let operation = UncheckedSendable(self)
        return CollectionRun(name: displayName) { items throws(CoordinationError) in
            .units(try CollectionStrategy(of: operation.value).units(of: items))
        }
    }
}
