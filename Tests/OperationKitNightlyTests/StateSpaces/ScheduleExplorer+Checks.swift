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
            let waitsForSibling = child.waitsFor.contains { $0 != Self.external }
            return isCancelled || child.waitsFor.isEmpty
                || (child.ignoresDependencies && !(keepsOrder && waitsForSibling))
        }
        return ready.contains(2) ? 2 : ready.first
    }

    /// What is wrong, if anything is.
    var problem: String? {
        let (table, places) = (readiness.table, readiness.places)
        let expected = [
            children.count { !$0.stage.isOver }, count(.queued), children.count(where: \.stage.isStarted),
            children.count(where: \.stage.isWorker), count(.alone),
        ]
        let counters = [table.remaining, places.queued, places.started, places.active, places.detachedCount]
        if counters != expected { return "counted \(counters), there are \(expected)" }
        // Where all places are taken, one of those who have them looks for the next child when it comes back.
        if let next, onTheWay == 0, hasPlace { return "child \(next) is forgotten" }
        if onTheWay > 1 { return "two workers are awaited" }
        for child in children where child.stage == .added || child.stage == .waiting {
            let external = child.waitsFor.contains(Self.external) ? 1 : 0
            if Int(table.records[child.slot].openExternal) != external { return "openExternal is wrong" }
        }
        let dependents = externalSlot.map { table.records[$0].dependents.count { table.records[$0].phase != .gone } }
        if let dependents, dependents != waitingForExternal {
            return "\(dependents) wait for the external dependency"
        }
        let gone = table.records.filter { $0.phase == .gone }
        if table.records.count < 2 * gone.count { return "ended children pile up" }
        if gone.contains(where: { $0.open == 0 }) { return "a slot is not used again" }
        let slots = children.filter { !$0.stage.isOver }.map(\.slot)
        return Set(slots).count == slots.count ? nil : "a slot is used twice"
    }

    /// How many of those that the queue was handed take a place.
    var queuedHere: Int { children.count { $0.stage == .queued && $0.isReadyOnQueue } }

    func count(_ stages: Stage...) -> Int { children.count { stages.contains($0.stage) } }

    /// All that the future depends on. What the queue of those who are ready looks like inside follows from it.
    var identity: [Int] {
        let places = readiness.places
        var numbers = [
            onTheWay, readiness.table.early, hasEnded ? 1 : 0, hasStarted ? 1 : 0, isCancelling ? 1 : 0,
            isCancelled ? 1 : 0, places.limit, places.isKeptByQueue ? 1 : 0, places.isWorkerEarly ? 1 : 0,
            places.isSuspended ? 1 : 0, budget.hashValue, children.count, externalSlot ?? -1,
        ]
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
