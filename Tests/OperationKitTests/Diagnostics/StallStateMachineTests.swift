import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("StallStateMachine") struct StallStateMachineTests {
    /// Drives a machine as a watcher does, with numbers for operations, and seconds.
    private struct Driver {
        var machine = StallStateMachine<UInt64>(threshold: .seconds(30))
        private(set) var alarms: [StallStateMachine<UInt64>.Alarm] = []

        mutating func start(_ number: UInt64, in parent: UInt64? = nil, fraction: Double = 0, at seconds: Int) {
            let alarm = machine.started(
                OperationID(number), number, in: parent.map { OperationID($0) }, fraction: fraction,
                at: .seconds(seconds))
            alarms += alarm.map { [$0] } ?? []
        }

        mutating func end(_ number: UInt64, at seconds: Int) -> UInt64? {
            let (element, alarm) = machine.ended(OperationID(number), at: .seconds(seconds))
            alarms += alarm.map { [$0] } ?? []
            return element
        }

        /// Has the last alarm ring, and examines the suspects.
        ///
        /// - Returns: What is stalled.
        mutating func ring(fraction: Double = 0, at seconds: Int) -> [UInt64] {
            guard let last = alarms.last else { return [] }
            let (suspects, next) = machine.rang(last, at: .seconds(seconds))
            alarms += next.map { [$0] } ?? []
            return suspects.filter { examine($0.element, fraction: fraction, at: seconds) != nil }.map(\.element)
        }

        mutating func examine(_ number: UInt64, fraction: Double = 0, at seconds: Int) -> Duration? {
            let id = OperationID(number)
            let (age, alarm) = machine.examined(id, fraction: fraction, at: .seconds(seconds))
            alarms += alarm.map { [$0] } ?? []
            return age
        }

        var times: [Duration] { alarms.map(\.time) }
    }

    private var driver = Driver()

    @Test("The first operation sets an alarm, and the others none until it has rung") mutating func alarms() {
        driver.start(1, at: 0)
        driver.start(2, at: 10)
        driver.start(3, at: 20)
        #expect(driver.times == [.seconds(30)])
        #expect(driver.ring(at: 30) == [1])
        #expect(driver.times == [.seconds(30), .seconds(40)])
        #expect(driver.ring(at: 60) == [2, 3])
        #expect(driver.times.count == 2 && driver.machine.alarm == nil)
    }

    @Test("An alarm stays as it is when its operation ends, and then finds nothing") mutating func emptyAlarm() {
        driver.start(1, at: 0)
        #expect(driver.end(1, at: 5) == 1)
        #expect(driver.machine.count == 0)
        driver.start(2, at: 7)
        #expect(driver.times == [.seconds(30)])
        #expect(driver.ring(at: 30) == [])
        #expect(driver.times == [.seconds(30), .seconds(37)])
        #expect(driver.end(2, at: 31) == 2)
        #expect(driver.ring(at: 37) == [] && driver.machine.alarm == nil)
    }

    @Test("The deadline of an operation that ends is given up") mutating func endedBeforeAlarm() {
        driver.start(1, at: 0)
        driver.start(2, at: 20)
        #expect(driver.end(2, at: 25) == 2)
        #expect(driver.ring(at: 30) == [1])
        #expect(driver.machine.alarm == nil)
    }

    @Test("An alarm that was replaced does nothing when it rings") mutating func oldAlarm() {
        driver.start(1, at: 0)
        let old = driver.alarms[0]
        driver.start(2, at: 20)
        #expect(driver.ring(at: 30) == [1])
        let (suspects, next) = driver.machine.rang(old, at: .seconds(90))
        #expect(suspects.isEmpty && next == nil)
        #expect(driver.ring(at: 50) == [2])
    }

    @Test("An operation is stalled once, and is forgotten with its end") mutating func once() {
        driver.start(1, at: 0)
        #expect(driver.ring(at: 30) == [1])
        #expect(driver.examine(1, at: 99) == nil)
        #expect(driver.end(1, at: 100) == 1)
        #expect(driver.end(1, at: 100) == nil)
        #expect(driver.machine.count == 0 && driver.machine.alarm == nil)
    }

    @Test("A suspect that ends before it is examined is not stalled") mutating func endedSuspect() {
        driver.start(1, at: 0)
        let (suspects, _) = driver.machine.rang(driver.alarms[0], at: .seconds(30))
        #expect(suspects.map(\.element) == [1])
        #expect(driver.end(1, at: 31) == 1)
        #expect(driver.examine(1, at: 30) == nil)
    }

    @Test("A parent is no suspect while a child executes, stalled or not") mutating func parked() {
        driver.start(1, at: 0)
        driver.start(2, in: 1, at: 0)
        #expect(driver.ring(at: 30) == [2])
        #expect(driver.machine.alarm == nil)
        #expect(driver.end(2, at: 40) == 2)
        #expect(driver.times.last == .seconds(70))
        #expect(driver.ring(at: 70) == [1])
        driver.start(3, in: 1, at: 80)
        #expect(driver.end(3, at: 85) == 3)
        #expect(driver.ring(at: 115) == [])
    }

    @Test("A parent in which a child has ended is examined again the whole time later")
    mutating func activity() {
        driver.start(1, at: 0)
        driver.start(2, in: 1, at: 5)
        #expect(driver.end(2, at: 10) == 2)
        #expect(driver.ring(at: 30) == [])
        #expect(driver.times.last == .seconds(40))
        #expect(driver.ring(at: 40) == [1])
    }

    @Test("A suspect in which something has ended that is not watched is examined again the whole time later")
    mutating func fraction() {
        driver.start(1, fraction: 0.25, at: 0)
        #expect(driver.ring(fraction: 0.5, at: 30) == [])
        #expect(driver.times.last == .seconds(60))
        #expect(driver.ring(fraction: 0.5, at: 60) == [1])
    }

    @Test("A suspect in which a child starts before it is examined waits for that") mutating func childMeanwhile() {
        driver.start(1, at: 0)
        _ = driver.machine.rang(driver.alarms[0], at: .seconds(30))
        driver.start(2, in: 1, at: 31)
        #expect(driver.examine(1, at: 30) == nil)
        #expect(driver.end(2, at: 32) == 2)
        // Its end has made it no suspect any more.
        #expect(driver.examine(1, at: 30) == nil)
        #expect(driver.ring(at: 61) == [])
        #expect(driver.ring(at: 62) == [1])
    }

    @Test("A parent that started before anything was watched is never a suspect, and forgotten with its last child")
    mutating func earlierParent() {
        driver.start(2, in: 1, at: 0)
        driver.start(3, in: 1, at: 0)
        #expect(driver.machine.count == 3)
        #expect(driver.end(2, at: 40) == 2)
        #expect(driver.ring(at: 40) == [3])
        #expect(driver.end(1, at: 40) == nil)
        #expect(driver.end(3, at: 40) == 3)
        #expect(driver.machine.count == 0)
    }

    @Test("A parent whose start comes to be known after that of its child waits for the child")
    mutating func lateParent() {
        driver.start(2, in: 1, at: 0)
        driver.start(1, at: 1)
        #expect(driver.ring(at: 31) == [2])
        #expect(driver.end(2, at: 40) == 2)
        #expect(driver.ring(at: 70) == [1])
    }
}
