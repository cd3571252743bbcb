import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("State machine of hedged operations") struct HedgeStateMachineTests {
    private typealias Machine = HedgeStateMachine

    @Test("The next attempt begins after the delay, or when one fails") func order() {
        var machine = Machine(maximumAttempts: 4)
        #expect(machine.started() == .begin(1, isLast: false))
        #expect(machine.began() == nil)
        #expect(machine.delayEnded(after: 1) == .begin(2, isLast: false))
        #expect(machine.began() == nil)
        #expect(machine.attemptEnded(1, with: .failure) == .begin(3, isLast: false))
        #expect(machine.began() == nil)
        // That of an earlier attempt, which was ended.
        #expect(machine.delayEnded(after: 2) == nil)
        #expect(machine.delayEnded(after: 3) == .begin(4, isLast: true))
        #expect(machine.began() == nil)
        #expect(machine.attemptEnded(2, with: .failure) == nil)
        #expect(machine.attemptEnded(4, with: .success) == .cancelOthers)
        #expect(machine.attemptEnded(3, with: .success) == nil)
        #expect(machine.winner == 4 && machine.isDecided)
    }

    @Test("What makes an attempt due while another one is being begun is remembered") func whileBeginning() {
        var machine = Machine(maximumAttempts: 3)
        _ = machine.started()
        #expect(machine.attemptEnded(1, with: .failure) == nil)
        #expect(machine.began() == .begin(2, isLast: false))
        #expect(machine.attemptEnded(2, with: .success) == .cancelOthers)
        #expect(machine.began() == .cancelOthers)
    }

    @Test("Each attempt that fails while another one is being begun is replaced") func severalWhileBeginning() {
        var machine = Machine(maximumAttempts: 6)
        _ = machine.started()
        _ = machine.began()
        #expect(machine.delayEnded(after: 1) == .begin(2, isLast: false))
        _ = machine.began()
        #expect(machine.delayEnded(after: 2) == .begin(3, isLast: false))
        let actions = [machine.attemptEnded(1, with: .failure), machine.attemptEnded(2, with: .failure)]
        #expect(actions == [nil, nil])
        #expect(machine.began() == .begin(4, isLast: false))
        #expect(machine.began() == .begin(5, isLast: false))
        #expect(machine.began() == nil)
    }

    @Test("After a cancellation, or an attempt that cannot begin, no further attempt begins") func closed() {
        var cancelled = Machine(maximumAttempts: 3)
        _ = cancelled.started()
        _ = cancelled.began()
        #expect(cancelled.attemptEnded(1, with: .cancellation) == .endDelay)
        #expect(cancelled.delayEnded(after: 1) == nil && !cancelled.isDecided)
        var failed = Machine(maximumAttempts: 3)
        _ = failed.started()
        #expect(failed.beginFailed() == .cancelOthers)
        #expect(failed.isDecided && failed.winner == nil)
    }

    // MARK: - All orders

    /// The machine, and what is around it.
    private struct World: Hashable {
        var machine: Machine
        var beginning: (number: Int, isLast: Bool)?
        /// The attempt that is being begun may end before it is reported to have begun.
        var hasRun = false
        var running: Set<Int> = []
        var delay: Int?
        var successes = 0

        static func == (left: World, right: World) -> Bool {
            left.machine == right.machine && left.beginning?.number == right.beginning?.number
                && left.hasRun == right.hasRun && left.running == right.running && left.delay == right.delay
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(machine)
            hasher.combine(beginning?.number)
            hasher.combine(hasRun)
            hasher.combine(running)
            hasher.combine(delay)
        }

        mutating func perform(_ action: Machine.Action?) {
            switch action {
            case .begin(let number, let isLast)?:
                #expect(beginning == nil && !machine.isDecided)
                delay = nil
                (beginning, hasRun) = ((number, isLast), false)
            case .endDelay?, .cancelOthers?: delay = nil
            case nil: break
            }
        }

        /// All that can happen next.
        func next() -> [World] {
            var all: [World] = []
            func add(_ change: (inout World) -> Void) {
                var world = self
                change(&world)
                all.append(world)
            }
            if let (number, isLast) = beginning {
                if hasRun {
                    add {
                        $0.beginning = nil
                        $0.perform($0.machine.began())
                    }
                } else {
                    add {
                        if !isLast { $0.delay = number }
                        $0.running.insert(number)
                        $0.hasRun = true
                    }
                    add {
                        $0.beginning = nil
                        $0.perform($0.machine.beginFailed())
                    }
                }
            }
            if let delay {
                add {
                    $0.delay = nil
                    $0.perform($0.machine.delayEnded(after: delay))
                }
            }
            for number in running {
                for ending in Machine.Ending.allCases {
                    add {
                        $0.running.remove(number)
                        $0.perform($0.machine.attemptEnded(number, with: ending))
                    }
                }
            }
            return all
        }

        /// Whether something is left that will happen by itself.
        var isOver: Bool { beginning == nil && running.isEmpty && delay == nil }
    }

    @Test("In every order of events, attempts begin one by one, and the delay ends with the attempts", arguments: 1...4)
    func everyOrder(maximum: Int) {
        var first = World(machine: Machine(maximumAttempts: maximum))
        first.perform(first.machine.started())
        var seen: Set<World> = [first]
        var open = [first]
        while let world = open.popLast() {
            if world.beginning == nil, world.running.isEmpty {
                #expect(world.isOver, "A delay goes on after all attempts have ended: \(world)")
            }
            if world.beginning == nil, world.machine.isDecided {
                #expect(world.delay == nil, "A delay goes on after the decision: \(world)")
            }
            #expect(world.machine.last <= maximum && world.running.count <= maximum)
            for next in world.next() where seen.insert(next).inserted { open.append(next) }
        }
        TestExtent.report("Hedged operations with \(maximum) attempts: \(seen.count) states")
        #expect(seen.count > maximum * 3)
    }
}
