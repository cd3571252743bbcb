import Testing

@testable import OperationKit

/// What becomes of a prerequisite that several operations share.
@Suite("SharedRunStateMachine") struct SharedRunStateMachineTests {
    private typealias Machine = SharedRunStateMachine<Int>

    @Test("One waiter asks, the others wait for its answer, and all go on when the run has ended") func run() {
        var machine = Machine()
        #expect(machine.arrived(1) == .ask(1))
        #expect(machine.arrived(2) == nil)
        #expect(machine.answered(hasPrerequisite: true) == .run)
        #expect(machine.arrived(3) == nil)
        #expect(machine.ended() == .resume([1, 2, 3]))
        #expect(machine.state == .idle && machine.arrived(4) == .ask(4))
    }

    @Test("Where nothing has to run, all that wait for the answer go on") func nothingToRun() {
        var machine = Machine()
        _ = machine.arrived(1)
        _ = machine.arrived(2)
        #expect(machine.answered(hasPrerequisite: false) == .resume([1, 2]))
        #expect(machine.state == .idle)
    }

    @Test("A run that its last waiter has left is stopped, and another one is asked for after its end") func stopped() {
        var machine = Machine()
        _ = machine.arrived(1)
        _ = machine.answered(hasPrerequisite: true)
        #expect(machine.left(1) == .stop)
        #expect(machine.arrived(2) == nil)
        #expect(machine.ended() == .ask(2))
        #expect(machine.answered(hasPrerequisite: true) == .run)
    }

    @Test("The answer for a waiter that has left is used for those that have not") func askerLeft() {
        var machine = Machine()
        _ = machine.arrived(1)
        _ = machine.arrived(2)
        #expect(machine.left(1) == nil)
        #expect(machine.answered(hasPrerequisite: true) == .run)
        #expect(machine.ended() == .resume([2]))
        _ = machine.arrived(3)
        _ = machine.left(3)
        #expect(machine.answered(hasPrerequisite: true) == nil)
        #expect(machine.state == .idle)
    }

    @Test("If the waiter that was to ask is cancelled before, another one asks") func declined() {
        var machine = Machine()
        _ = machine.arrived(1)
        _ = machine.arrived(2)
        #expect(machine.declined(by: 1) == .ask(2))
        #expect(machine.declined(by: 2) == nil)
        #expect(machine.state == .idle)
    }

    @Test("In every history of four waiters there is one run at a time, and each waiter goes on once, or has left")
    func everyHistory() {
        var explored: Set<Situation> = [Situation()]
        var remaining = Array(explored)
        while let situation = remaining.popLast() {
            for next in situation.followers() {
                #expect(next.violation == nil, "\(next)")
                if next.violation == nil, explored.insert(next).inserted { remaining.append(next) }
            }
        }
        #expect(explored.count > 500)
        // Whatever has happened, the waiters that are left come to an end if what was begun does.
        for situation in explored { #expect(situation.hasEnded(), "\(situation)") }
    }

    /// A machine, and what has become of the waiters.
    private struct Situation: Hashable {
        enum Place: Hashable { case outside, waiting, asking, left, askingAndLeft, gone }

        var state = Machine()
        var places = [Place](repeating: .outside, count: 4)
        var runCount = 0
        var violation: String?

        static func == (left: Situation, right: Situation) -> Bool { left.identity == right.identity }
        func hash(into hasher: inout Hasher) { hasher.combine(identity) }
        private var identity: String {
            "\(state.state) \(state.waiters.sorted()) \(places) \(runCount) \(violation ?? "")"
        }

        private enum Event { case arrive(Int), leave(Int), answer(Int, Bool), decline(Int), end }

        func followers() -> [Situation] {
            var events: [Event] = runCount > 0 ? [.end] : []
            for (waiter, place) in places.enumerated() {
                switch place {
                case .outside: events.append(.arrive(waiter))
                case .waiting: events.append(.leave(waiter))
                case .asking: events += [.leave(waiter), .answer(waiter, true), .answer(waiter, false)]
                case .askingAndLeft: events += [.decline(waiter), .answer(waiter, true), .answer(waiter, false)]
                case .left, .gone: break
                }
            }
            return events.map { event in
                var next = self
                next.take(event)
                return next
            }
        }

        private mutating func take(_ event: Event) {
            switch event {
            case .arrive(let waiter):
                places[waiter] = .waiting
                perform(state.arrived(waiter))
            case .leave(let waiter):
                places[waiter] = places[waiter] == .asking ? .askingAndLeft : .left
                perform(state.left(waiter))
            case .answer(let waiter, let hasPrerequisite):
                places[waiter] = places[waiter] == .asking ? .waiting : .left
                perform(state.answered(hasPrerequisite: hasPrerequisite))
            case .decline(let waiter):
                places[waiter] = .left
                perform(state.declined(by: waiter))
            case .end:
                runCount -= 1
                perform(state.ended())
            }
        }

        private mutating func perform(_ action: Machine.Action?) {
            switch action {
            case nil: break
            case .ask(let waiter):
                if places[waiter] != .waiting { violation = "\(waiter) is to ask, which is \(places[waiter])" }
                if runCount > 0 || places.contains(.asking) || places.contains(.askingAndLeft) {
                    violation = "\(waiter) is to ask although there is a run, or one asks"
                }
                places[waiter] = .asking
            case .run:
                runCount += 1
                if runCount > 1 { violation = "two runs" }
            case .stop:
                if runCount != 1 { violation = "there is nothing to stop" }
                if places.contains(.waiting) { violation = "a run is stopped that is waited for" }
            case .resume(let waiters):
                for waiter in waiters {
                    if places[waiter] != .waiting { violation = "\(waiter) goes on, which is \(places[waiter])" }
                    places[waiter] = .gone
                }
            }
        }

        func hasEnded() -> Bool {
            var situation = self
            for _ in 0..<20 {
                let places = situation.places
                if let asker = places.firstIndex(of: .asking) ?? places.firstIndex(of: .askingAndLeft) {
                    situation.take(.answer(asker, true))
                } else if situation.runCount > 0 {
                    situation.take(.end)
                }
            }
            return situation.violation == nil && situation.state.state == .idle && !situation.places.contains(.waiting)
        }
    }
}
