/// A collection operation that the library runs, item by item or batch by batch.
///
/// Don't conform to this protocol yourself: the four protocols with a strategy bring it along. It is where the run itself is
/// implemented, once for all of them.
public protocol ManagedCollectionOperation<CollectionType>: CollectionOperation {}

extension ManagedCollectionOperation {
    /// Performs the operation on all items of a collection by the strategy of the type.
    ///
    /// - Parameters:
    ///   - collection: The items.
    ///   - completion: Called once, as ``CollectionOperation/performOperation(on:completion:)`` says.
    public func performOperation(on collection: [CollectionType], completion: @escaping Completion) {
        // Before the options are read, which may run another object of this type.
        let request = WorkRequest.taken(by: self, from: CollectionUnits.$request)
        let units = Result { () throws(CoordinationError) in try CollectionStrategy(of: self).units(of: collection) }
        if let request { return request.answer(units) }
        switch units {
        case .success(let units): CollectionDriver(units, completion: completion).start()
        case .failure(let error): completion([error])
        }
    }
}
