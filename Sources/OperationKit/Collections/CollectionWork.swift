/// The units of one run over a collection.
struct CollectionUnits: Sendable {
    /// Starts a unit. The completion may be called before this returns, later, repeatedly, on any thread.
    typealias Start = @Sendable (_ index: Int, _ completion: @escaping CollectionDriver.UnitCompletion) -> Void

    /// What errors call a unit.
    let unitName: String
    let count: Int
    /// At least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    let start: Start
    /// Asks the units in flight to stop, if they can be.
    let cancelRunning: (@Sendable () -> Void)?
}

/// What a run does with its collection.
enum CollectionWork: Sendable {
    /// The library runs it in units.
    case units(CollectionUnits)
    /// The type runs all items by its own `performOperation(on:completion:)`.
    case own(itemCount: Int, @Sendable (_ completion: @escaping CollectionDriver.Completion) -> Void)

    /// The number of slots that are reported. For a type's own way that is a guess.
    var unitCount: Int {
        switch self {
        case .units(let units): units.count
        case .own(let itemCount, _): itemCount
        }
    }

    /// What errors call a unit.
    var unitName: String {
        switch self {
        case .units(let units): units.unitName
        case .own: "item"
        }
    }
}
