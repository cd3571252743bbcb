import OperationKitTestSupport

@testable import OperationKit

@Suite("CollectionStateMachine") struct CollectionStateMachineTests {
    private typealias Machine = CollectionStateMachine

    @Test(
        "Every order of events finishes the run once, within its limit, and starts every item that nothing stops",
        arguments: 0...TestExtent.choose(3, long: 4), 1...TestExtent.choose(2, long: 3))
    func everyOrder(count: Int, limit: Int) {
        var states = 0
        for options in 0..<8 {
            var search = Search(
                count: count, limit: limit, isSequence: options & 1 > 0, stops: options & 2 > 0,
                mayBeCancelled: options & 4 > 0)
            search.exploreAll()
            #expect(search.problems.isEmpty && search.ends > 0)
            #expect(search.mostInFlight == min(limit, count), "The limit is reached, and not exceeded")
            states += search.visited.count
        }
        TestExtent.report("Runs over \(count) items, limit \(limit): \(states) states")
    }

    @Test("A run that is cancelled before its first worker starts finishes immediately") func cancelledEarly() {
        for count in [2, nil] {
            var machine = Machine(count: count, limit: 2, stopsAtFirstFailure: false)
            #expect(machine.cancelled() == nil)
            #expect(machine.started() == .finish(isCancelled: true))
            machine = Machine(count: count, limit: 2, stopsAtFirstFailure: false)
            #expect(machine.started() == .requestWorker)
            #expect(machine.cancelled() == .finish(isCancelled: true))
            #expect(machine.workerStarted() == (.stop, nil))
        }
    }
}

/// Follows all events from the start of a run to its end, through each state once.
private struct Search {
    typealias Machine = CollectionStateMachine

    /// What is under way, outside of the machine.
    struct World {
        enum Stop { case end, cancellation, failure }

        var machine: Machine
        var remaining: Int
        var isWorkerRequested = false
        var readers = 0
        var items: [Int: Machine.Item] = [:]
        /// Items whose call is on the stack of a worker.
        var calls: Set<Int> = []
        /// Items that a worker settles; -1 for one that was read in vain.
        var settling: Set<Int> = []
        var settlingDetached: Set<Int> = []
        var isCancelled = false
        var cancelsInFlight = 0
        /// What keeps further items from starting.
        var stop: Stop?
        var isFinished = false

        /// Where in the space of states it is: the machine's own state as well, which is private.
        var key: String {
            let items = items.sorted { $0.key < $1.key }.map { "\($0.key)\($0.value)" }
            return "\(machine) \(remaining) \(isWorkerRequested) \(readers) \(items) \(calls.sorted()) "
                + "\(settling.sorted()) \(settlingDetached.sorted()) \(isCancelled) \(String(describing: stop))"
        }

        var open: [Int] { items.filter { $0.value == .onStack || $0.value == .detached }.map(\.key) }
        var workers: Int { readers + calls.count + settling.count }
        var detached: Int { items.values.count { $0 == .detached } + settlingDetached.count }
        /// How many items exist that have not been released.
        var inFlight: Int { calls.count + settling.count + detached }
    }

    let count: Int
    let limit: Int
    let isSequence: Bool
    let stops: Bool
    let mayBeCancelled: Bool
    var visited: Set<String> = []
    var pending: [World] = []
    var problems: Set<String> = []
    var ends = 0
    var mostInFlight = 0

    mutating func exploreAll() {
        let machine = Machine(count: isSequence ? nil : count, limit: limit, stopsAtFirstFailure: stops)
        var world = World(machine: machine, remaining: count)
        if !isSequence, count == 0 { world.stop = .end }
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
            step(world, item: call) { world in
                world.calls.remove(call)
                return world.machine.returned(&world.items[call, default: .ended])
            }
        }
        for item in world.settling {
            step(world) { world in
                world.settling.remove(item)
                return world.machine.itemSettled()
            }
        }
        for item in world.settlingDetached {
            var next = world
            next.settlingDetached.remove(item)
            perform(next.machine.detachedItemSettled(), in: &next)
            visit(next)
        }
        for item in world.open {
            for isFailure in [false, true] { end(item, isFailure, in: world) }
        }
        if mayBeCancelled, !world.isCancelled, !world.isFinished {
            var next = world
            next.isCancelled = true
            if next.stop == nil { next.stop = .cancellation }
            perform(next.machine.cancelled(), in: &next)
            visit(next)
        }
        if world.workers + world.detached == 0, !world.isWorkerRequested { checkEnd(world) }
    }

    private mutating func read(in world: World) {
        // A worker that finds that the run is stopping reads no further.
        if world.remaining == 0 || world.stop != nil {
            step(world) { world in
                world.readers -= 1
                if world.stop == nil { world.stop = .end }
                return world.machine.sequenceEnded()
            }
        }
        if world.remaining > 0 {
            step(world) { world in
                world.readers -= 1
                world.remaining -= 1
                return world.machine.itemRead()
            }
        }
    }

    private mutating func end(_ item: Int, _ isFailure: Bool, in world: World) {
        var next = world
        if isFailure, stops { next.stop = .failure }
        let (isAccepted, action) = next.machine.ended(&next.items[item, default: .ended], isFailure: isFailure)
        if !isAccepted { problems.insert("the end of \(item) was not accepted") }
        var again = next
        if again.machine.ended(&again.items[item, default: .ended], isFailure: true).isAccepted {
            problems.insert("\(item) ended twice")
        }
        if action == .settle { next.settlingDetached.insert(item) } else { perform(action, in: &next) }
        visit(next)
    }

    /// Visits the state after an event of a worker, and of an item if it has one.
    private mutating func step(_ world: World, item: Int? = nil, _ event: (inout World) -> Machine.WorkerEffects) {
        var next = world
        let effects = event(&next)
        switch effects.step {
        case .read:
            if !isSequence || next.stop != nil {
                problems.insert("a worker reads after \(String(describing: next.stop))")
            }
            next.readers += 1
        case .start(let index):
            if next.stop != nil { problems.insert("an item starts after \(String(describing: next.stop))") }
            if index != next.items.count { problems.insert("\(index) starts as number \(next.items.count)") }
            next.items[index] = .onStack
            next.calls.insert(index)
            if !isSequence, index == count - 1 { next.stop = .end }
        case .settle:
            if !isSequence { problems.insert("an item of an array is settled") }
            next.settling.insert(item ?? -1)
        case .stop:
            break
        }
        perform(effects.action, in: &next)
        visit(next)
    }

    private mutating func perform(_ action: Machine.Action?, in world: inout World) {
        switch action {
        case nil: break
        case .requestWorker:
            if world.isWorkerRequested { problems.insert("two workers on their way") }
            world.isWorkerRequested = true
        case .settle:
            problems.insert("nothing to settle")
        case .cancelItemsInFlight:
            world.cancelsInFlight += 1
            if world.cancelsInFlight > 1 { problems.insert("cancelled twice") }
            if world.stop == nil { problems.insert("cancelled without a reason") }
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
        let places = world.workers + world.detached + (world.isWorkerRequested ? 1 : 0)
        if !world.isFinished, places > limit { problems.insert("more than \(limit) places are taken") }
        if world.readers > 1 { problems.insert("\(world.readers) workers read") }
        if world.isFinished, world.workers + world.detached > 0 { problems.insert("finished too early") }
        let ended = world.items.values.count { $0 == .ended || $0 == .endedOnStack }
        if world.machine.endedCount != ended { problems.insert("counts \(world.machine.endedCount) ends") }
        if world.machine.startedCount != world.items.count { problems.insert("counts other items") }
        // Items in flight of an array are told of a cancellation, and of a failure that ends the run.
        if !isSequence, !world.isFinished, world.isCancelled || world.stop == .failure, world.cancelsInFlight == 0 {
            problems.insert("items in flight were not cancelled")
        }
        // A place is never left empty while there may be more to start.
        if world.stop == nil, world.readers == 0, places < limit, !world.isWorkerRequested {
            problems.insert("\(places) places of \(limit) are taken, and no worker is to come")
        }
    }

    private mutating func checkEnd(_ world: World) {
        ends += 1
        if !world.isFinished { problems.insert("stalled after \(world.items.count) of \(count)") }
        if world.items.count < count, world.stop != .cancellation, world.stop != .failure {
            problems.insert("only \(world.items.count) of \(count) started")
        }
    }
}
