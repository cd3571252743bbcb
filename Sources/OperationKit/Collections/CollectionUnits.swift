/// The units of one run over a collection. A *unit* is what one call performs: an item, or a batch of items.
struct CollectionUnits: Sendable {
    /// Starts a unit. The completion may be called before this returns, later, repeatedly, on any thread.
    typealias Start = @Sendable (_ index: Int, _ completion: @escaping UnitCompletion) -> Void

    /// With this, a ``CollectionRun`` asks the default `performOperation(on:completion:)` for its units, or for what is
    /// wrong with the options.
    @TaskLocal static var request: WorkRequest<Result<CollectionUnits, CoordinationError>>?

    /// The type that performs the units.
    let typeName: String
    /// What errors call a unit.
    let unitName: String
    /// The index of the first unit, among those of the whole run.
    var firstIndex = 0
    let count: Int
    /// At least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    let start: Start
    /// Asks the units in flight to stop, if they can be.
    let cancelRunning: (@Sendable () -> Void)?

    /// What errors call the unit at an index of these.
    func name(of index: Int) -> String { "\(unitName) \(firstIndex + index)" }
}
