import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The state machine of a run alone: no thread, no lock, no object.
@Suite("CollectionStateMachine") struct CollectionStateMachineTests {
    @Test("An empty run is finished at the start")
    func emptyRun() {
        var machine = CollectionStateMachine(count: 0, limit: 3, stopsAtFirstFailure: false)
        let action = machine.started()
        #expect(!action.requestsWorker)
        #expect(action.errors?.isEmpty == true)
    }

    @Test("The first worker is requested at the start")
    func firstWorker() {
        var machine = CollectionStateMachine(count: 2, limit: 1, stopsAtFirstFailure: false)
        #expect(machine.started().requestsWorker)
    }

    @Test("A unit that ends in its call keeps the worker")
    func synchronousUnit() {
        var machine = CollectionStateMachine(count: 2, limit: 1, stopsAtFirstFailure: false)
        _ = machine.started()
        #expect(machine.workerStarted().workerAction == .start(0))
        #expect(machine.ended(0, error: nil).action.requestsWorker == false)
        #expect(machine.returned(0).workerAction == .start(1))
        let (isAccepted, action) = machine.ended(1, error: TestError.first)
        #expect(isAccepted)
        #expect(action.errors?.map(text) == ["success", "first"])
        #expect(!machine.isInFlight(1))
        #expect(machine.returned(1).workerAction == .stop)
    }

    @Test("A unit that outlasts its call stops the worker at the limit")
    func detachedUnit() {
        var machine = CollectionStateMachine(count: 2, limit: 1, stopsAtFirstFailure: false)
        _ = machine.started()
        #expect(machine.workerStarted().workerAction == .start(0))
        let (workerAction, action) = machine.returned(0)
        #expect(workerAction == .stop && !action.requestsWorker)
        #expect(machine.ended(0, error: nil).action.requestsWorker)
        #expect(machine.workerStarted().workerAction == .start(1))
    }

    @Test("A worker goes on while there are places")
    func placesLeft() {
        var machine = CollectionStateMachine(count: 5, limit: 3, stopsAtFirstFailure: false)
        _ = machine.started()
        let (first, action) = machine.workerStarted()
        #expect(first == .start(0))
        #expect(action.requestsWorker, "The next worker is sent for as soon as a unit begins")
        let (second, secondAction) = machine.returned(0)
        #expect(second == .start(1))
        #expect(!secondAction.requestsWorker, "One is on its way already")
        // The place that is left belongs to the worker on its way.
        #expect(machine.returned(1).workerAction == .stop)
        #expect(machine.workerStarted().workerAction == .start(2))
        #expect(machine.inFlightCount == 3)
        #expect(machine.returned(2).workerAction == .stop)
    }

    @Test("The second report of an end is ignored in every state")
    func secondReport() {
        var machine = CollectionStateMachine(count: 3, limit: 1, stopsAtFirstFailure: false)
        _ = machine.started()
        _ = machine.workerStarted()
        #expect(machine.ended(0, error: TestError.first).isAccepted)
        #expect(!machine.ended(0, error: nil).isAccepted)
        _ = machine.returned(0)
        #expect(!machine.ended(0, error: TestError.second).isAccepted)
        _ = machine.returned(1)
        #expect(machine.ended(1, error: nil).isAccepted)
        #expect(!machine.ended(1, error: TestError.second).isAccepted)
        _ = machine.workerStarted()
        #expect(machine.ended(2, error: nil).action.errors?.map(text) == ["first", "success", "success"])
        for index in 0..<3 { #expect(!machine.ended(index, error: TestError.second).isAccepted) }
    }

    @Test("A run that is cancelled before the start is finished at the start")
    func cancelledBeforeTheStart() {
        var machine = CollectionStateMachine(count: 2, limit: 2, stopsAtFirstFailure: false)
        #expect(machine.cancelled().errors == nil)
        let action = machine.started()
        #expect(!action.requestsWorker)
        #expect(action.errors?.map(text) == ["cancelled", "cancelled"])
    }

    @Test("A run that is cancelled before its first worker starts is finished immediately")
    func cancelledBeforeTheFirstWorker() {
        var machine = CollectionStateMachine(count: 2, limit: 2, stopsAtFirstFailure: false)
        _ = machine.started()
        #expect(machine.cancelled().errors?.map(text) == ["cancelled", "cancelled"])
        #expect(machine.workerStarted().workerAction == .stop)
    }

    @Test("A cancelled run waits for the units in flight")
    func cancelledWithUnitsInFlight() {
        var machine = CollectionStateMachine(count: 3, limit: 1, stopsAtFirstFailure: false)
        _ = machine.started()
        _ = machine.workerStarted()
        #expect(machine.cancelled().cancelsUnitsInFlight)
        #expect(machine.cancelled() == nil, "They are cancelled once")
        #expect(machine.returned(0).workerAction == .stop)
        let errors = machine.ended(0, error: TestError.first).action.errors
        #expect(errors?.map(text) == ["first", "cancelled", "cancelled"])
        #expect(machine.cancelled() == nil)
    }

    @Test("The first failure stops the run if the policy says so")
    func firstFailure() {
        var machine = CollectionStateMachine(count: 4, limit: 2, stopsAtFirstFailure: true)
        _ = machine.started()
        _ = machine.workerStarted()
        #expect(machine.workerStarted().workerAction == .start(1))
        #expect(machine.ended(0, error: CancellationError(), isCancellation: true).action == nil)
        #expect(machine.returned(0).workerAction == .start(2))
        #expect(machine.ended(2, error: TestError.first).action.cancelsUnitsInFlight)
        #expect(machine.returned(2).workerAction == .stop)
        let errors = machine.ended(1, error: TestError.second).action.errors
        #expect(errors?.map(text) == ["cancelled", "second", "first", "cancelled"])
    }

    @Test("Only the first failure, or the cancellation before it, cancels the units in flight")
    func unitsInFlightAreCancelledOnce() {
        for isCancelledFirst in [false, true] {
            var machine = CollectionStateMachine(count: 4, limit: 3, stopsAtFirstFailure: true)
            _ = machine.started()
            for index in 0..<3 { #expect(machine.workerStarted().workerAction == .start(index)) }
            if isCancelledFirst { #expect(machine.cancelled().cancelsUnitsInFlight) }
            #expect(machine.ended(1, error: TestError.first).action.cancelsUnitsInFlight == !isCancelledFirst)
            #expect(machine.ended(2, error: TestError.second).action == nil)
            #expect(machine.cancelled() == nil)
            let errors = machine.ended(0, error: CancellationError(), isCancellation: true).action.errors
            #expect(errors?.map(text) == ["cancelled", "first", "second", "cancelled"])
        }
    }

    @Test("A failure with nothing else in flight finishes the run, and cancels nothing")
    func lastFailure() {
        var machine = CollectionStateMachine(count: 3, limit: 1, stopsAtFirstFailure: true)
        _ = machine.started()
        _ = machine.workerStarted()
        let errors = machine.ended(0, error: TestError.first).action.errors
        #expect(errors?.map(text) == ["first", "cancelled", "cancelled"])
    }

    /// Every way in which calls and ends can follow each other, for all small runs: a search through all states.
    @Test(
        "Every order of events finishes the run once, with every slot filled",
        arguments: 0...TestExtent.choose(2, long: 3), 1...3)
    func everyOrder(count: Int, limit: Int) {
        for stopsAtFirstFailure in [false, true] {
            for failing in [nil, 0, 1] where failing.map({ $0 < count }) ?? true {
                for cancels in [false, true] {
                    var search = Search(failing: failing, stops: stopsAtFirstFailure)
                    search.explore(count: count, limit: limit, cancels: cancels)
                    #expect(search.wrong.isEmpty)
                    #expect(search.ends > 0)
                    // The limit is reached, and never exceeded.
                    #expect(search.mostInFlight <= min(limit, count))
                    if !cancels, failing == nil { #expect(search.mostInFlight == min(limit, count)) }
                }
            }
        }
    }
}

extension CollectionStateMachine.Action? {
    fileprivate var requestsWorker: Bool {
        if case .requestWorker = self { true } else { false }
    }

    fileprivate var cancelsUnitsInFlight: Bool {
        if case .cancelUnitsInFlight = self { true } else { false }
    }

    fileprivate var errors: [(any Error)?]? {
        if case .finish(let errors) = self { errors } else { nil }
    }
}

/// Follows all orders of events from the start of a run to its end.
private struct Search {
    /// What is under way, outside of the machine.
    private struct World {
        var machine: CollectionStateMachine
        var isWorkerRequested = false
        /// Units whose call is on the stack of a worker.
        var calls: [Int] = []
        /// Units whose end has not been reported.
        var open: Set<Int> = []
        var begun = 0
        /// How the units have ended.
        var outcomes: [Int: String] = [:]
        /// Whether the units in flight were told to stop.
        var areCancelled = false
        /// Whether a unit has failed, or the run was cancelled, while others were in flight.
        var mustCancel = false
        var errors: [(any Error)?]?
        var mayCancel = false
        var isCancelled = false
    }

    let failing: Int?
    let stops: Bool
    var wrong: [String] = []
    var ends = 0
    var mostInFlight = 0

    init(failing: Int?, stops: Bool) {
        self.failing = failing
        self.stops = stops
    }

    mutating func explore(count: Int, limit: Int, cancels: Bool) {
        var world = World(
            machine: CollectionStateMachine(count: count, limit: limit, stopsAtFirstFailure: stops), mayCancel: cancels)
        let action = world.machine.started()
        perform(action, in: &world)
        explore(world, count: count, limit: limit)
    }

    private mutating func explore(_ world: World, count: Int, limit: Int) {
        mostInFlight = max(mostInFlight, world.open.count)
        let counted = world.machine.inFlightCount
        if world.open.count != counted { wrong.append("counts \(counted) in flight") }
        if world.open.count > limit { wrong.append("\(world.open.count) in flight") }
        if !world.isWorkerRequested, world.calls.isEmpty, world.open.isEmpty {
            ends += 1
            check(world, count: count)
            return
        }
        if world.isWorkerRequested {
            var next = world
            next.isWorkerRequested = false
            let (workerAction, action) = next.machine.workerStarted()
            take(workerAction, action, in: &next)
            explore(next, count: count, limit: limit)
        }
        for call in world.calls {
            var next = world
            next.calls.removeAll { $0 == call }
            let (workerAction, action) = next.machine.returned(call)
            take(workerAction, action, in: &next)
            explore(next, count: count, limit: limit)
        }
        for unit in world.open {
            // A unit that is cancelled may end with that, or regardless of it.
            for endsCancelled in Set([false, world.areCancelled]) {
                var next = world
                next.open.remove(unit)
                let error: (any Error)? =
                    endsCancelled ? CancellationError() : unit == failing ? TestError.numbered(unit) : nil
                next.outcomes[unit] = text(error)
                if stops, !endsCancelled, unit == failing, !next.open.isEmpty { next.mustCancel = true }
                let (isAccepted, action) = next.machine.ended(unit, error: error, isCancellation: endsCancelled)
                if !isAccepted { wrong.append("the end of \(unit) was not accepted") }
                if next.machine.ended(unit, error: nil).isAccepted { wrong.append("\(unit) ended twice") }
                perform(action, in: &next)
                explore(next, count: count, limit: limit)
            }
        }
        if world.mayCancel {
            var next = world
            next.mayCancel = false
            next.isCancelled = true
            if !next.open.isEmpty { next.mustCancel = true }
            perform(next.machine.cancelled(), in: &next)
            explore(next, count: count, limit: limit)
        }
    }

    private mutating func take(
        _ workerAction: CollectionStateMachine.WorkerAction, _ action: CollectionStateMachine.Action?,
        in world: inout World
    ) {
        if case .start(let unit) = workerAction {
            if unit != world.begun { wrong.append("\(unit) began as number \(world.begun)") }
            if world.errors != nil || world.areCancelled { wrong.append("\(unit) began after the end") }
            world.begun += 1
            world.calls.append(unit)
            world.open.insert(unit)
        }
        perform(action, in: &world)
    }

    private mutating func perform(_ action: CollectionStateMachine.Action?, in world: inout World) {
        if action.requestsWorker {
            if world.isWorkerRequested { wrong.append("two workers on their way") }
            world.isWorkerRequested = true
        }
        if action.cancelsUnitsInFlight {
            if world.areCancelled { wrong.append("cancelled twice") }
            if world.open.isEmpty { wrong.append("cancelled with nothing in flight") }
            world.areCancelled = true
        }
        if world.mustCancel != world.areCancelled {
            wrong.append("units in flight \(world.mustCancel ? "not cancelled" : "cancelled without a reason")")
        }
        if let errors = action.errors {
            if world.errors != nil { wrong.append("ended twice") }
            if !world.open.isEmpty { wrong.append("ended with units in flight") }
            world.errors = errors
        }
    }

    private mutating func check(_ world: World, count: Int) {
        guard let errors = world.errors else { return wrong.append("stalled after \(world.begun) of \(count)") }
        let expected = (0..<count).map { world.outcomes[$0] ?? "cancelled" }
        if errors.map(text) != expected { wrong.append("\(errors.map(text)) instead of \(expected)") }
        if world.begun < count, !world.isCancelled, failing == nil || !stops {
            wrong.append("only \(world.begun) of \(count) began")
        }
    }
}
