/// The work of a run, cut into units.
struct CollectionUnits: Sendable {
    /// Begins a unit. The completion may be called at once, later, repeatedly, on any thread.
    typealias Begin = @Sendable (_ index: Int, _ completion: @escaping CollectionDriver.UnitCompletion) -> Void

    let count: Int
    /// At least 1.
    let limit: Int
    let failurePolicy: CompoundOperation.FailurePolicy
    var begin: Begin
    /// Asks the units in flight to stop, if they can be.
    var cancelRunning: (@Sendable () -> Void)?
}

/// What a collection operation is going to do with a collection.
enum CollectionPlan: Sendable {
    /// A number of units, which errors call by this word and their index.
    case units(CollectionUnits, word: String)
    /// All at once, by a strategy of the type's own.
    case whole(count: Int, @Sendable (_ completion: @escaping CollectionDriver.Completion) -> Void)
    /// Nothing: the options are wrong.
    case invalid(CoordinationError)

    /// Carries the plan out.
    ///
    /// - Returns: Who carries it out, if it can be cancelled.
    @discardableResult
    func run(completion: @escaping CollectionDriver.Completion) -> CollectionDriver? {
        switch self {
        case .units(let units, _):
            let driver = CollectionDriver(units, completion: completion)
            driver.start()
            return driver
        case .whole(_, let perform):
            // Only a `CollectionRun` gets such a plan so far.
            perform(completion)
        case .invalid(let error):
            completion([error])
        }
        return nil
    }
}

extension CollectionOperation {
    /// A plan of units that a method with a completion begins, or that an `async` one performs, where the type has one.
    ///
    /// - Parameters:
    ///   - count: How many units there are.
    ///   - limit: How many may be in flight at once.
    ///   - word: What errors call a unit.
    ///   - begin: Begins a unit.
    ///   - perform: Performs a unit, in a task that is cancelled when the run is.
    func plan(
        count: Int, limit: Int, word: String, begin: @escaping CollectionUnits.Begin,
        perform: (@Sendable (_ index: Int) async throws -> Void)?
    ) -> CollectionPlan {
        if limit < 1 { return .invalid(.invalidLimit(type: displayName, maxConcurrentOperationCount: limit)) }
        var units = CollectionUnits(count: count, limit: limit, failurePolicy: failurePolicy, begin: begin)
        if let perform {
            let tasks = RunningTasks()
            units.begin = { index, completion in
                tasks.run(index, { try await perform(index) }, completion: completion)
            }
            units.cancelRunning = { tasks.cancel() }
        }
        return .units(units, word: word)
    }
}
