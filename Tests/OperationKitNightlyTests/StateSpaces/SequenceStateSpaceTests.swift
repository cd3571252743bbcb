import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Every state that a run over a small sequence can reach, in whatever order its events come.
@Suite("SequenceStateMachine: all states") struct SequenceStateSpaceTests {
    @Test(
        "Every order of events finishes the run once, and nothing is read after that or two at a time",
        arguments: 0...TestExtent.choose(2, long: 4), 1...3)
    func everyOrder(count: Int, limit: Int) {
        var states = 0
        for stops in [false, true] {
            for mayBeCancelled in [false, true] {
                var search = SequenceSearch(count: count, limit: limit, stops: stops, mayBeCancelled: mayBeCancelled)
                search.exploreAll()
                #expect(search.problems.isEmpty)
                #expect(search.ends > 0)
                #expect(search.mostInFlight == min(limit, count), "The limit is reached, and not exceeded")
                states += search.stateCount
            }
        }
        TestExtent.report("Sequences of \(count) units, limit \(limit): \(states) states")
    }
}

/// Follows all events from the start of a run to its end, through each state once.
private struct SequenceSearch {
    typealias Answer = (workerAction: SequenceStateMachine.WorkerAction, action: SequenceStateMachine.Action?)

    /// What is under way, outside of the machine.
    private struct World {
        var machine: SequenceStateMachine
        var remaining: Int
        var isWorkerRequested = false
        var readers = 0
        var units: [Int: SequenceStateMachine.Unit] = [:]
        /// Units whose call is on the stack of a worker.
        var calls: Set<Int> = []
        /// Units whose failure a worker delivers.
        var deliveries: Set<Int> = []
        var isCancelled = false
        var mayYield = true
        /// What keeps the run from reading.
        var stop: Stop?
        var isFinished = false

        enum Stop { case end, cancellation, failure }

        /// Where in the space of states it is: the machine's own state as well, which is private.
        var key: String {
            let units = units.sorted { $0.key < $1.key }.map { "\($0.key)\($0.value)" }
            let state = "\(remaining) \(isWorkerRequested) \(readers) \(calls.sorted()) \(deliveries.sorted())"
            return "\(machine) \(state) \(isCancelled) \(mayYield) \(String(describing: stop)) \(isFinished) \(units)"
        }

        var inFlight: Int { units.values.count { $0 != .ended } }
        var detached: Int { units.values.count { $0 == .detached || $0 == .releasingDetached } }
        /// Units that a worker releases.
        var releases: Int { units.values.count { $0 == .releasing } }
        var workers: Int { readers + calls.count + deliveries.count + releases + (isWorkerRequested ? 1 : 0) }
    }

    private let count: Int
    private let limit: Int
    private let stops: Bool
    private let mayBeCancelled: Bool
    private var visited: Set<String> = []
    private var pending: [World] = []
    private(set) var problems: Set<String> = []
    private(set) var ends = 0
    private(set) var mostInFlight = 0

    var stateCount: Int { visited.count }

    init(count: Int, limit: Int, stops: Bool, mayBeCancelled: Bool) {
        (self.count, self.limit, self.stops, self.mayBeCancelled) = (count, limit, stops, mayBeCancelled)
    }

    mutating func exploreAll() {
        let machine = SequenceStateMachine(limit: limit, stopsAtFirstFailure: stops)
        var world = World(machine: machine, remaining: count)
        perform(world.machine.started(), in: &world)
        visit(world)
        while let next = pending.popLast() { follow(next) }
    }

    private mutating func visit(_ world: World) {
        check(world)
        if visited.insert(world.key).inserted { pending.append(world) }
    }

    /// Visits the states that come after one.
    private mutating func follow(_ world: World) {
        if world.isWorkerRequested {
            step(world) { world in
                world.isWorkerRequested = false
                return world.machine.workerStarted()
            }
        }
        if world.readers > 0 { read(in: world) }
        for call in world.calls {
            step(world, unit: call) { world in
                world.calls.remove(call)
                return world.machine.returned(&world.units[call, default: .ended])
            }
        }
        for unit in world.deliveries {
            step(world, unit: unit) { world in
                world.deliveries.remove(unit)
                return world.machine.failureDelivered(&world.units[unit, default: .ended])
            }
        }
        for (unit, progress) in world.units where progress == .releasing {
            step(world, unit: unit) { $0.machine.released(&$0.units[unit, default: .ended]) }
        }
        for (unit, progress) in world.units where progress == .releasingDetached {
            var next = world
            perform(next.machine.detachedUnitReleased(&next.units[unit, default: .ended]), in: &next)
            visit(next)
        }
        for (unit, progress) in world.units where progress.isOpen {
            for outcome in [SequenceStateMachine.Outcome.success, .cancellation, .failure] {
                end(unit, outcome, in: world)
            }
        }
        if mayBeCancelled, !world.isCancelled, !world.isFinished {
            var next = world
            next.isCancelled = true
            visit(next)
        }
        if world.workers == 0, world.inFlight == 0 { checkEnd(world) }
    }

    private mutating func read(in world: World) {
        if world.isCancelled {
            // The worker finds that before it takes an item, or only afterward.
            for taken in 0...min(1, world.remaining) {
                step(world) { world in
                    world.readers -= 1
                    world.remaining -= taken
                    if world.stop == nil { world.stop = .cancellation }
                    return world.machine.cancelled()
                }
            }
            return
        }
        if world.mayYield {
            var next = world
            next.readers -= 1
            next.mayYield = false
            perform(next.machine.workerYielded(), in: &next)
            visit(next)
        }
        if world.remaining == 0 {
            return step(world) { world in
                world.readers -= 1
                if world.stop == nil { world.stop = .end }
                return world.machine.sequenceEnded()
            }
        }
        let unit = count - world.remaining
        step(world, unit: unit) { world in
            world.readers -= 1
            world.remaining -= 1
            return world.machine.unitRead(&world.units[unit, default: .onStack])
        }
    }

    private mutating func end(_ unit: Int, _ outcome: SequenceStateMachine.Outcome, in world: World) {
        var next = world
        if outcome == .failure, stops { next.stop = .failure }
        let (isAccepted, action) = next.machine.ended(&next.units[unit, default: .ended], outcome)
        if !isAccepted { problems.insert("the end of \(unit) was not accepted") }
        var again = next
        if again.machine.ended(&again.units[unit, default: .ended], .success).isAccepted {
            problems.insert("\(unit) ended twice")
        }
        switch action {
        case .requestDelivery: next.deliveries.insert(unit)
        case .releaseUnit: break
        default: perform(action, in: &next)
        }
        visit(next)
    }

    /// Visits the state after an event of a worker, and of a unit if it has one.
    private mutating func step(_ world: World, unit: Int? = nil, _ event: (inout World) -> Answer) {
        var next = world
        let (workerAction, action) = event(&next)
        switch workerAction {
        case .read:
            if next.stop != nil { problems.insert("a worker reads after \(String(describing: next.stop))") }
            next.readers += 1
        case .perform:
            if next.stop != nil { problems.insert("a unit is performed after \(String(describing: next.stop))") }
            unit.map { _ = next.calls.insert($0) }
        case .deliverFailure:
            unit.map { _ = next.deliveries.insert($0) }
        case .release:
            if unit.map({ next.units[$0] }) != .releasing { problems.insert("nothing to release") }
        case .stop:
            break
        }
        perform(action, in: &next)
        visit(next)
    }

    private mutating func perform(_ action: SequenceStateMachine.Action?, in world: inout World) {
        switch action {
        case nil: break
        case .requestWorker:
            if world.isWorkerRequested { problems.insert("two workers on their way") }
            world.isWorkerRequested = true
        case .requestDelivery, .releaseUnit:
            problems.insert("a delivery or a release without a unit")
        case .finish(let isCancelled):
            if world.isFinished { problems.insert("finished twice") }
            if world.stop == nil { problems.insert("finished without a reason") }
            if isCancelled != (world.stop == .cancellation) {
                problems.insert("finished with isCancelled \(isCancelled) after \(String(describing: world.stop))")
            }
            world.isFinished = true
        }
    }

    private mutating func check(_ world: World) {
        mostInFlight = max(mostInFlight, world.inFlight)
        if world.machine.inFlightCount != world.inFlight {
            problems.insert("counts \(world.machine.inFlightCount) in flight instead of \(world.inFlight)")
        }
        if world.workers + world.detached > limit { problems.insert("more than \(limit) places are taken") }
        if world.readers > 1 { problems.insert("\(world.readers) workers read") }
        if world.isFinished, world.readers > 0 || world.inFlight > 0 { problems.insert("finished too early") }
        // A place is never left empty while there may be more to read.
        if world.stop == nil, world.readers == 0, !world.isWorkerRequested, world.workers + world.detached < limit {
            problems.insert("\(world.workers + world.detached) places of \(limit) are taken, and no worker is to come")
        }
    }

    private mutating func checkEnd(_ world: World) {
        ends += 1
        if !world.isFinished { problems.insert("stalled with \(world.remaining) left") }
        if world.remaining > 0, world.stop != .cancellation, world.stop != .failure {
            problems.insert("\(world.remaining) units were not read")
        }
    }
}
