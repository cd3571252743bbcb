import OperationKitTestSupport

@testable import OperationKit

// What has to be true.
extension ScheduleExplorer {
    /// The child that has to be next.
    var next: Int? {
        guard hasStarted else { return nil }
        if !isCancelled {
            if isCancelling || readiness.places.isSuspended { return nil }
            let taken = children.count(where: \.stage.isStarted) + queuedHere
            if readiness.places.limit >= 0, taken >= readiness.places.limit { return nil }
        }
        let ready = children.indices.filter {
            let child = children[$0]
            guard child.stage == .waiting else { return false }
            let waitsForSibling = child.waitsFor.contains { $0 != ScheduleExplorer.external }
            return isCancelled || child.waitsFor.isEmpty
                || (child.ignoresDependencies && !(keepsOrder && waitsForSibling))
        }
        return ready.contains(2) ? 2 : ready.first
    }

    mutating func check() {
        if violation != nil { return }
        // Where all places are taken, one of those who have them looks for the next child when it comes back.
        if next != nil, onTheWay == 0, hasPlace { violation = "child \(next ?? 0) is forgotten" }
        if readiness.table.remaining != children.count - count(.ended, .watchedEnded) {
            violation = "remaining is wrong"
        }
        if readiness.places.queued != count(.queued) { violation = "queued is wrong" }
        let places = readiness.places
        let counters = [places.started, places.active, places.detachedCount]
        let expected = [
            children.count(where: \.stage.isStarted), children.count(where: \.stage.isWorker), count(.alone),
        ]
        for child in children where child.stage == .added || child.stage == .waiting {
            let external = child.waitsFor.contains(ScheduleExplorer.external) ? 1 : 0
            if Int(readiness.table.records[child.slot].openExternal) != external { violation = "openExternal is wrong" }
        }
        let records = readiness.table.records
        let dependents = externalSlot.map { records[$0].dependents.count { records[$0].phase != .gone } }
        if let dependents, dependents != waitingForExternal {
            violation = "\(dependents) wait for the external dependency"
        }
        if records.count < 2 * records.count(where: { $0.phase == .gone }) { violation = "ended children pile up" }
        let slots = children.filter { $0.stage != .ended && $0.stage != .watchedEnded }.map(\.slot)
        if Set(slots).count != slots.count { violation = "a slot is used twice" }
        let isSlotLost = readiness.table.records.contains { $0.phase == .gone && $0.open == 0 }
        if isSlotLost { violation = "a slot is not used again" }
        if onTheWay > 1 { violation = "two workers are awaited" }
        if counters != expected { violation = "counted \(counters), there are \(expected)" }
    }

    /// How many of those that the queue was handed take a place.
    var queuedHere: Int { children.count { $0.stage == .queued && $0.isReadyOnQueue } }

    func count(_ stages: Stage...) -> Int { children.count { stages.contains($0.stage) } }

    /// All that the future depends on. What the queue of those who are ready looks like inside follows from it.
    var identity: [Int] {
        var numbers = [
            onTheWay, readiness.table.early, hasEnded ? 1 : 0, hasStarted ? 1 : 0, isCancelling ? 1 : 0,
            isCancelled ? 1 : 0,
            readiness.places.limit, readiness.places.isKeptByQueue ? 1 : 0, readiness.places.isWorkerEarly ? 1 : 0,
        ]
        numbers += [readiness.places.isSuspended ? 1 : 0, budget.hashValue, children.count, externalSlot ?? -1]
        for child in children {
            numbers += [child.slot, child.stage.rawValue, child.ignoresDependencies ? 1 : 0]
            numbers += [child.isEnding ? 1 : 0, child.isHandedOver ? 1 : 0, child.isReadyOnQueue ? 1 : 0]
            numbers.append(child.waitsFor.reduce(0) { $0 | 1 << ($1 + 1) })
        }
        for record in readiness.table.records {
            numbers += [record.phase.hashValue, record.ordinal, Int(record.open)]
            numbers += [Int(record.openExternal), record.ignoresDependencies ? 1 : 0, record.dependents.count]
            numbers += record.dependents
        }
        return numbers
    }
}
