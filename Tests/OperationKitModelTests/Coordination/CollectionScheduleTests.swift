import Testing

@testable import OperationKit

/// The schedule of a run alone: no thread, no lock, no object.
@Suite("CollectionSchedule") struct CollectionScheduleTests {
    @Test func anEmptyRunIsOverAtTheStart() {
        var schedule = CollectionSchedule(count: 0, limit: 3, stopsAtFirstFailure: false)
        let order = schedule.started()
        #expect(!order.sendsForWorker)
        #expect(order.errors?.isEmpty == true)
    }

    @Test func theFirstWorkerIsSentForAtTheStart() {
        var schedule = CollectionSchedule(count: 2, limit: 1, stopsAtFirstFailure: false)
        #expect(schedule.started().sendsForWorker)
    }

    @Test func aUnitThatEndsInItsCallKeepsTheWorker() {
        var schedule = CollectionSchedule(count: 2, limit: 1, stopsAtFirstFailure: false)
        _ = schedule.started()
        #expect(schedule.workerCame().step == .begin(0))
        #expect(schedule.ended(0, error: nil).order.sendsForWorker == false)
        #expect(schedule.returned(0).step == .begin(1))
        let (isAccepted, order) = schedule.ended(1, error: TestError.first)
        #expect(isAccepted)
        #expect(order.errors?.map(text) == ["success", "first"])
        #expect(schedule.returned(1).step == .leave)
    }

    @Test func aUnitThatOutlastsItsCallSendsTheWorkerAwayAtTheLimit() {
        var schedule = CollectionSchedule(count: 2, limit: 1, stopsAtFirstFailure: false)
        _ = schedule.started()
        #expect(schedule.workerCame().step == .begin(0))
        let (step, order) = schedule.returned(0)
        #expect(step == .leave && !order.sendsForWorker)
        #expect(schedule.ended(0, error: nil).order.sendsForWorker)
        #expect(schedule.workerCame().step == .begin(1))
    }

    @Test func aWorkerGoesOnWhileThereArePlaces() {
        var schedule = CollectionSchedule(count: 5, limit: 3, stopsAtFirstFailure: false)
        _ = schedule.started()
        let (first, order) = schedule.workerCame()
        #expect(first == .begin(0))
        #expect(order.sendsForWorker, "The next worker is sent for as soon as a unit begins")
        let (second, secondOrder) = schedule.returned(0)
        #expect(second == .begin(1))
        #expect(!secondOrder.sendsForWorker, "One is on its way already")
        // The place that is left belongs to the worker on its way.
        #expect(schedule.returned(1).step == .leave)
        #expect(schedule.workerCame().step == .begin(2))
        #expect(schedule.inFlight == 3)
        #expect(schedule.returned(2).step == .leave)
    }

    @Test func theSecondReportOfAnEndIsIgnoredInEveryState() {
        var schedule = CollectionSchedule(count: 3, limit: 1, stopsAtFirstFailure: false)
        _ = schedule.started()
        _ = schedule.workerCame()
        #expect(schedule.ended(0, error: TestError.first).isAccepted)
        #expect(!schedule.ended(0, error: nil).isAccepted)
        _ = schedule.returned(0)
        #expect(!schedule.ended(0, error: TestError.second).isAccepted)
        _ = schedule.returned(1)
        #expect(schedule.ended(1, error: nil).isAccepted)
        #expect(!schedule.ended(1, error: TestError.second).isAccepted)
        _ = schedule.workerCame()
        #expect(schedule.ended(2, error: nil).order.errors?.map(text) == ["first", "success", "success"])
        for index in 0..<3 { #expect(!schedule.ended(index, error: TestError.second).isAccepted) }
    }

    @Test func cancellingBeforeTheStartEndsTheRunAtTheStart() {
        var schedule = CollectionSchedule(count: 2, limit: 2, stopsAtFirstFailure: false)
        #expect(schedule.cancelled().errors == nil)
        let order = schedule.started()
        #expect(!order.sendsForWorker)
        #expect(order.errors?.map(text) == ["cancelled", "cancelled"])
    }

    @Test func cancellingBeforeTheFirstWorkerCameEndsTheRunAtOnce() {
        var schedule = CollectionSchedule(count: 2, limit: 2, stopsAtFirstFailure: false)
        _ = schedule.started()
        #expect(schedule.cancelled().errors?.map(text) == ["cancelled", "cancelled"])
        #expect(schedule.workerCame().step == .leave)
    }

    @Test func cancellingWaitsForTheUnitsInFlight() {
        var schedule = CollectionSchedule(count: 3, limit: 1, stopsAtFirstFailure: false)
        _ = schedule.started()
        _ = schedule.workerCame()
        #expect(schedule.cancelled().errors == nil)
        #expect(schedule.cancelled().errors == nil)
        #expect(schedule.returned(0).step == .leave)
        let errors = schedule.ended(0, error: TestError.first).order.errors
        #expect(errors?.map(text) == ["first", "cancelled", "cancelled"])
        #expect(schedule.cancelled().errors == nil)
    }

    @Test func theFirstFailureStopsTheRunIfItIsToldTo() {
        var schedule = CollectionSchedule(count: 4, limit: 2, stopsAtFirstFailure: true)
        _ = schedule.started()
        _ = schedule.workerCame()
        #expect(schedule.workerCame().step == .begin(1))
        #expect(schedule.ended(0, error: CancellationError()).order.errors == nil, "A cancellation is no failure")
        #expect(schedule.returned(0).step == .begin(2))
        #expect(schedule.ended(2, error: TestError.first).order.errors == nil)
        #expect(schedule.returned(2).step == .leave)
        let errors = schedule.ended(1, error: TestError.second).order.errors
        #expect(errors?.map(text) == ["cancelled", "second", "first", "cancelled"])
    }

    /// Every way in which calls and ends can follow each other, for all small runs: a search through all states.
    @Test(arguments: 0...3, 1...3)
    func everyOrderOfEventsEndsOnceWithEverySlotFilled(count: Int, limit: Int) {
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

extension CollectionSchedule.Order? {
    fileprivate var sendsForWorker: Bool {
        if case .sendForWorker = self { true } else { false }
    }

    fileprivate var errors: [(any Error)?]? {
        if case .end(let errors) = self { errors } else { nil }
    }
}

/// Follows all orders of events from the start of a run to its end.
private struct Search {
    /// What is under way, outside of the schedule.
    private struct World {
        var schedule: CollectionSchedule
        var isWorkerOnItsWay = false
        /// Units whose call is on the stack of a worker.
        var calls: [Int] = []
        /// Units whose end has not been reported.
        var open: Set<Int> = []
        var begun = 0
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
            schedule: CollectionSchedule(count: count, limit: limit, stopsAtFirstFailure: stops), mayCancel: cancels)
        let order = world.schedule.started()
        follow(order, in: &world)
        explore(world, count: count, limit: limit)
    }

    private mutating func explore(_ world: World, count: Int, limit: Int) {
        mostInFlight = max(mostInFlight, world.open.count)
        if world.open.count != world.schedule.inFlight { wrong.append("counts \(world.schedule.inFlight) in flight") }
        if world.open.count > limit { wrong.append("\(world.open.count) in flight") }
        if !world.isWorkerOnItsWay, world.calls.isEmpty, world.open.isEmpty {
            ends += 1
            check(world, count: count)
            return
        }
        if world.isWorkerOnItsWay {
            var next = world
            next.isWorkerOnItsWay = false
            let (step, order) = next.schedule.workerCame()
            take(step, order, in: &next)
            explore(next, count: count, limit: limit)
        }
        for call in world.calls {
            var next = world
            next.calls.removeAll { $0 == call }
            let (step, order) = next.schedule.returned(call)
            take(step, order, in: &next)
            explore(next, count: count, limit: limit)
        }
        for unit in world.open {
            var next = world
            next.open.remove(unit)
            let error = unit == failing ? TestError.numbered(unit) : nil
            let (isAccepted, order) = next.schedule.ended(unit, error: error)
            if !isAccepted { wrong.append("the end of \(unit) was not accepted") }
            if next.schedule.ended(unit, error: nil).isAccepted { wrong.append("\(unit) ended twice") }
            follow(order, in: &next)
            explore(next, count: count, limit: limit)
        }
        if world.mayCancel {
            var next = world
            next.mayCancel = false
            next.isCancelled = true
            follow(next.schedule.cancelled(), in: &next)
            explore(next, count: count, limit: limit)
        }
    }

    private mutating func take(
        _ step: CollectionSchedule.Step, _ order: CollectionSchedule.Order?, in world: inout World
    ) {
        if case .begin(let unit) = step {
            if unit != world.begun { wrong.append("\(unit) began as number \(world.begun)") }
            if world.errors != nil { wrong.append("\(unit) began after the end") }
            world.begun += 1
            world.calls.append(unit)
            world.open.insert(unit)
        }
        follow(order, in: &world)
    }

    private mutating func follow(_ order: CollectionSchedule.Order?, in world: inout World) {
        if order.sendsForWorker {
            if world.isWorkerOnItsWay { wrong.append("two workers on their way") }
            world.isWorkerOnItsWay = true
        }
        if let errors = order.errors {
            if world.errors != nil { wrong.append("ended twice") }
            if !world.open.isEmpty { wrong.append("ended with units in flight") }
            world.errors = errors
        }
    }

    private mutating func check(_ world: World, count: Int) {
        guard let errors = world.errors else { return wrong.append("stalled after \(world.begun) of \(count)") }
        let expected = (0..<count).map { index in
            index >= world.begun ? "cancelled" : index == failing ? "numbered(\(index))" : "success"
        }
        if errors.map(text) != expected { wrong.append("\(errors.map(text)) instead of \(expected)") }
        if world.begun < count, !world.isCancelled, failing == nil || !stops {
            wrong.append("only \(world.begun) of \(count) began")
        }
    }
}
