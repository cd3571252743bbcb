import Foundation
import OperationKit

// What events mean for the rows, and what the rows mean as a timeline.
extension TimelineRows {
    /// Records an event. The first time that something happens counts.
    mutating func record(_ event: OperationEvent, _ facts: ObservedFacts, at time: Time) {
        let count = rows.count
        guard let row = row(of: event.operation, name: event.name, type: facts.type) else {
            if case .finished = event.kind { drop() }
            return
        }
        // The name has just been recorded then.
        let isNew = rows.count > count
        change(row) { row in
            row.isComposite = facts.isComposite
            if let parent = facts.parent { row.parent = parent.number }
        }
        addDependencies(facts.dependencies, to: row)
        switch event.kind {
        case .added:
            change(row) { $0.added = $0.added == Self.never ? time : $0.added }
        case .started:
            change(row) { $0.started = time }
            if !isNew { rename(row, event.name) }
        case .waiting(let reason):
            endWait(row, at: time)
            changeDetails(row) { details, texts in
                guard details.waits.count < Self.mostDetails else { return }
                details.waits.append(Wait(reason: texts.reference(to: reason), from: time))
            }
        case .running:
            endWait(row, at: time)
            change(row) { $0.running = time }
            if facts.limit == nil, facts.resources.isEmpty { return }
            changeDetails(row) { details, texts in
                details.limit = facts.limit.map { Int32(clamping: $0) } ?? -1
                details.resources = facts.resources.map { texts.reference(to: $0) }
            }
        case .cancelled:
            changeDetails(row) { details, _ in details.cancelled = time }
        case .retrying(let attempt, _, let delay):
            changeDetails(row) { details, texts in
                guard details.retries.count < Self.mostDetails else { return }
                details.retries.append(
                    Retry(
                        attempt: Int32(clamping: attempt), error: texts.reference(to: facts.error ?? ""), time: time,
                        delay: delay))
            }
        case .finished:
            endWait(row, at: time)
            finish(row, at: time, facts.outcome)
            if let error = facts.error {
                changeDetails(row) { details, texts in details.error = texts.reference(to: error) }
            }
        }
    }

    /// The timeline, which begins with the first event.
    ///
    /// - Parameters:
    ///   - startDate: The date of the time 0 of the rows.
    ///   - now: The end, if something has not finished.
    /// - Returns: The timeline.
    func timeline(startDate: Date, now: Time) -> OperationTimeline {
        let origin = (0..<rows.count).lazy.compactMap { firstTime(of: $0) }.min() ?? now
        let entries = (0..<rows.count).map { entry(of: $0, origin: origin) }
        return OperationTimeline(
            checked: entries, startDate: startDate.addingTimeInterval(Double(origin) / 1e9),
            duration: unfinishedCount > 0 ? .nanoseconds(max(0, now - origin)) : .zero, droppedCount: droppedCount)
    }

    private func firstTime(of row: Int) -> Time? {
        let row = rows[row]
        let cancelled = row.details == 0 ? Self.never : details[Int(row.details) - 1].cancelled
        return [row.added, row.started, row.running, row.finished, cancelled].lazy.filter { $0 != Self.never }.min()
    }

    private func entry(of place: Int, origin: Time) -> OperationTimeline.Entry {
        let row = rows[place]
        func duration(_ time: Time) -> Duration? {
            time == Self.never ? nil : .nanoseconds(max(0, time - origin))
        }
        var entry = OperationTimeline.Entry(
            id: OperationID(row.id), name: texts[row.name], typeName: typeNames[Int(row.type)],
            parent: row.parent == Row.none ? nil : OperationID(row.parent), added: duration(row.added),
            started: duration(row.started), running: duration(row.running), finished: duration(row.finished),
            dependencies: dependencies(of: place), isComposite: row.isComposite)
        let details = row.details == 0 ? nil : details[Int(row.details) - 1]
        entry.outcome =
            switch row.outcome {
            case .none: nil
            case .success: .success
            case .cancelled: .cancelled
            case .failed: .failed(texts[details?.error ?? 0])
            }
        guard let details else { return entry }
        entry.cancelled = duration(details.cancelled)
        if isLate(details.returned, place) { entry.returned = duration(details.returned) }
        entry.waits = details.waits.map { wait in
            .init(reason: texts[wait.reason], from: duration(wait.from) ?? .zero, to: duration(wait.to))
        }
        entry.retries = details.retries.map { retry in
            .init(
                attempt: Int(retry.attempt), error: texts[retry.error], time: duration(retry.time) ?? .zero,
                delay: max(.zero, retry.delay))
        }
        entry.resources = details.resources.map { texts[$0] }
        if details.limit >= 0 { entry.limit = Int(details.limit) }
        return entry
    }
}
