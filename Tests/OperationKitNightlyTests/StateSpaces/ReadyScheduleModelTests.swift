import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Random programs of events against a naive model: which child may start, in which order, and that none is forgotten.
@Suite("Ready schedule against a model", .serialized, .takesTurns) struct ReadyScheduleModelTests {
    @Test("Random programs end with every child ended") func randomPrograms() {
        let seed = SplitMix64.freshSeed()
        for program in 0..<TestExtent.choose(300, long: 4_000) {
            var model = Model(seed: seed &+ UInt64(program))
            if let failure = model.run() {
                Issue.record("\(failure) in program \(program) of seed \(seed)")
                return
            }
        }
    }

    private struct Model {
        struct Child {
            let slot: Int
            let priority: Operation.QueuePriority
            var waitsFor: Set<Int>
        }

        var random: SplitMix64
        var schedule: ReadySchedule
        /// By ordinal.
        var waiting: [Int: Child] = [:]
        var ended: Set<Int> = []
        /// Begun: the slot, and whether a worker is inside `start()`.
        enum Stage { case starting, alone, queued }
        var begun: [Int: (slot: Int, stage: Stage)] = [:]
        var onTheWay = 0
        var isCancelled = false
        var additionsLeft = 6
        var changesLeft = 10
        var failure: String?

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            schedule = ReadySchedule(limit: [-1, 0, 1, 2, 3][Int(seed % 5)])
            for _ in 0..<Int(random.next() % 8) { add() }
            schedule.started()
            send()
        }

        var running: Int { begun.values.count { $0.stage != .queued } }

        mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

        mutating func add() {
            let slot = schedule.addedChild()
            let ordinal = schedule.table.added - 1
            let priority: Operation.QueuePriority = [.low, .normal, .normal, .high][pick(4)]
            var child = Child(slot: slot, priority: priority, waitsFor: [])
            for (other, open) in waiting where pick(3) == 0 {
                schedule.table.addDependency(of: slot, on: open.slot)
                child.waitsFor.insert(other)
            }
            for (other, open) in begun where pick(4) == 0 {
                schedule.table.addDependency(of: slot, on: open.slot)
                child.waitsFor.insert(other)
            }
            schedule.registered(slot, priority: priority)
            waiting[ordinal] = child
        }

        mutating func send() {
            if schedule.requestWorkerIfNeeded() { onTheWay += 1 }
        }

        /// The one that has to be next according to the model.
        var expected: Int? {
            if !isCancelled {
                if schedule.places.isSuspended { return nil }
                if schedule.places.limit >= 0, running >= schedule.places.limit { return nil }
            }
            return waiting.filter { isCancelled || $0.value.waitsFor.isEmpty }
                .min { ($1.value.priority.rawValue, $0.key) < ($0.value.priority.rawValue, $1.key) }?.key
        }

        mutating func takeNext() {
            let expected = expected
            guard let slot = schedule.startNext() else {
                if let expected { failure = "\(expected) was forgotten" }
                schedule.workerLeft()
                return send()
            }
            let ordinal = schedule.table.records[slot].ordinal
            if ordinal != expected { failure = "\(ordinal) began instead of \(String(describing: expected))" }
            waiting[ordinal] = nil
            begun[ordinal] = (slot, .starting)
            send()
        }

        mutating func end(_ ordinal: Int) {
            guard let child = begun.removeValue(forKey: ordinal) else { return }
            schedule.ended(child.slot)
            ended.insert(ordinal)
            for other in waiting.keys { waiting[other]?.waitsFor.remove(ordinal) }
        }

        /// A worker comes back from `start()`.
        mutating func startReturns(_ ordinal: Int, _ slot: Int) {
            switch pick(3) {
            case 0:
                end(ordinal)
                takeNext()
            case 1:
                schedule.handedToQueue(slot)
                begun[ordinal]?.stage = .queued
                schedule.workerLeft()
                send()
            default:
                schedule.detached(slot)
                begun[ordinal]?.stage = .alone
                takeNext()
            }
        }

        mutating func change() {
            changesLeft -= 1
            switch pick(5) {
            case 0: schedule.suspensionChanged(to: !schedule.places.isSuspended)
            case 1: schedule.limitChanged(to: [-1, 0, 1, 2, 5][pick(5)])
            case 2 where pick(3) == 0:
                schedule.cancellationStarted()
                schedule.cancelled()
                isCancelled = true
            default: if additionsLeft > 0 { additionsLeft -= 1; add() }
            }
            send()
        }

        mutating func run() -> String? {
            for _ in 0..<10_000 {
                if let failure { return failure }
                let starting = begun.filter { $0.value.stage == .starting }.sorted { $0.key < $1.key }
                let alone = begun.filter { $0.value.stage != .starting }.keys.sorted()
                switch pick(4) {
                case 0 where onTheWay > 0:
                    onTheWay -= 1
                    schedule.workerStarted()
                    takeNext()
                case 1 where !starting.isEmpty:
                    let child = starting[pick(starting.count)]
                    startReturns(child.key, child.value.slot)
                case 2 where !alone.isEmpty:
                    end(alone[pick(alone.count)])
                    send()
                case 3 where changesLeft > 0:
                    change()
                default:
                    if onTheWay == 0, begun.isEmpty, changesLeft == 0 {
                        if waiting.isEmpty { return schedule.table.remaining == 0 ? nil : "the count is wrong" }
                        // Nothing goes on by itself: another thread has to resume it or give it a place.
                        guard schedule.places.isSuspended || schedule.places.limit == 0 else {
                            return "\(waiting.keys) never began"
                        }
                        schedule.suspensionChanged(to: false)
                        schedule.limitChanged(to: 2)
                        send()
                        if onTheWay == 0 { return "no worker is requested" }
                    }
                }
            }
            return "it does not end"
        }
    }
}
