extension CollectionStrategy.Method {
    /// Returns a method that performs a unit again when it has failed, in a task of its own, which waits meanwhile.
    ///
    /// - Parameters:
    ///   - policy: When to perform it again. With a seed, each unit has other delays.
    ///   - clock: What the time is measured with.
    ///   - typeName: The type that performs the units, for errors.
    ///   - unitName: What errors call a unit.
    /// - Returns: The method.
    func retried(
        by policy: RetryPolicy, clock: any Clock<Duration>, typeName: String, unitName: String
    ) -> CollectionStrategy<Item>.Method {
        .async { items, unit, index in
            try await policy.perform(
                named: { "\(typeName), \(unitName) \(index)" }, index: index, clock: clock
            ) {
                switch self {
                case .async(let perform):
                    try await perform(items, unit, index)
                case .completion(let perform):
                    // A run of its own makes sure that each attempt has one end.
                    let units = CollectionUnits(
                        typeName: typeName, unitName: unitName, firstIndex: index, count: 1, limit: 1,
                        failurePolicy: .continueAll, start: { perform(items, unit, $1) }, cancelRunning: nil)
                    if let error = await CollectionDriver.error(of: units) { throw error }
                }
            }
        }
    }
}
