import Dispatch
import Foundation
import OperationKit
import OperationKitTimelines

/// What happens in a run: what a recorder of the library sees, and what stock operations tell of themselves.
///
/// The library observes its own operations. The demo also has some that are none, to compare them with: these have a
/// ``Track``. Their entries are part of the same timeline, below a row for the queue.
final class Recording: OperationObserver, @unchecked Sendable {
    /// Something that an operation has to say, for the log.
    struct Note: Sendable {
        let time: Duration
        let name: String
        let text: String
    }

    /// The queue as the row around all operations.
    private struct Root {
        let id = Track.nextID()
        let name: String
        let limit: Int
    }

    private let recorder = OperationTimelineRecorder()
    private let start = ContinuousClock.now
    private let startDate = Date()
    private let root: Root?
    private let operations = DispatchGroup()
    private let leftWork = DispatchGroup()
    private let lock = NSLock()
    private var firstEvent: ContinuousClock.Instant?
    /// The operations of the library that were added to something, as long as no event of them is known, and what is
    /// not known from their events.
    private var expected: [OperationID: OperationTimeline.Entry] = [:]
    private var expectedOrder: [OperationID] = []
    private var unfinished: Set<OperationID> = []
    private var stock: [OperationTimeline.Entry] = []
    private var stockPlaces: [OperationID: Int] = [:]
    private var said: [Note] = []
    private var isSettled = false

    /// Creates a recording, whose time begins now.
    ///
    /// - Parameters:
    ///   - queue: What the row of the queue is called. Without one, there is no row for it.
    ///   - limit: How many operations the queue runs at the same time.
    init(queue: String? = nil, limit: Int = 1) {
        root = queue.map { Root(name: $0, limit: limit) }
    }

    /// Identifies the row of the queue, for work that is on no queue.
    var queueID: OperationID? { root?.id }

    /// How long the recording has been going on.
    var elapsed: Duration { ContinuousClock.now - start }

    /// What was said so far, oldest first.
    var notes: [Note] { lock.withLock { said } }

    func note(_ name: String, _ text: String) {
        lock.withLock { said.append(Note(time: elapsed, name: name, text: text)) }
    }

    // MARK: - Observing

    /// Records what happens to an operation, and to all that is inside it. To be called before children are added:
    /// who observes later does not see what they waited for until then.
    func observe(_ operation: AsyncOperation) {
        // In this order: once the end has come here, the recorder has it, too.
        operation.addObserver(recorder)
        operation.addObserver(self)
    }

    /// Records that an operation is about to be added to the queue. ``settled()`` waits for its end from now on.
    func enqueue(_ operation: Operation) {
        if let operation = operation as? AsyncOperation {
            let id = operation.observationID
            observe(operation)
            operations.enter()
            expect(operation, in: root?.id)
            _ = lock.withLock { unfinished.insert(id) }
        } else if let operation = operation as? any TrackedOperation {
            operation.track.added(to: root?.id)
        }
    }

    /// Records that an operation of the library was added to the queue, or to a composite.
    ///
    /// Adding to a queue is no event, and neither is waiting there. So until its start nothing else is known of it.
    func expect(_ operation: AsyncOperation, in parent: OperationID?) {
        let entry = OperationTimeline.Entry(
            id: operation.observationID, name: operation.name ?? "", typeName: "\(type(of: operation))",
            parent: parent, added: elapsed, isComposite: operation is CompoundOperation)
        lock.withLock {
            expected[entry.id] = entry
            expectedOrder.append(entry.id)
        }
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        let isAwaited = lock.withLock {
            firstEvent = min(firstEvent ?? event.time, event.time)
            guard case .finished = event.kind else { return false }
            return unfinished.remove(event.operation) != nil
        }
        if isAwaited { operations.leave() }
    }

    /// Suspends until all operations have ended, and the work that naive ones have left behind.
    func settled() async {
        await finished()
        await leftWork.end()
        lock.withLock { isSettled = true }
    }

    /// Suspends until the ends of all operations have been recorded.
    func finished() async {
        await operations.end()
    }

    // MARK: - Stock operations

    /// Adds the entry of an operation that the library cannot observe.
    func addStock(_ entry: OperationTimeline.Entry) {
        group(of: entry).enter()
        lock.withLock {
            stockPlaces[entry.id] = stock.count
            stock.append(entry)
        }
    }

    /// Changes the entry of a stock operation. What happens after its end is not recorded.
    func changeStock(_ id: OperationID, _ body: (_ entry: inout OperationTimeline.Entry, _ now: Duration) -> Void) {
        let ended = lock.withLock { () -> OperationTimeline.Entry? in
            guard let place = stockPlaces[id], stock[place].finished == nil else { return nil }
            body(&stock[place], elapsed)
            return stock[place].finished == nil ? nil : stock[place]
        }
        if let ended { group(of: ended).leave() }
    }

    private func group(of entry: OperationTimeline.Entry) -> DispatchGroup {
        entry.typeName == Track.workType ? leftWork : operations
    }

    // MARK: - Drawing

    /// What was recorded up to now.
    var timeline: OperationTimeline {
        let observed = recorder.timeline.entries
        return lock.withLock {
            // The recorder's timeline begins with its first event, this one with the recording.
            let offset = firstEvent.map { $0 - start } ?? .zero
            var entries = stock
            for entry in observed {
                var entry = entry.shifted(by: offset)
                if let expected = expected[entry.id] {
                    entry.parent = entry.parent ?? expected.parent
                    entry.added = entry.added ?? expected.added
                }
                entries.append(entry)
            }
            let known = Set(observed.map(\.id))
            entries += expectedOrder.filter { !known.contains($0) }.compactMap { expected[$0] }
            if let root { entries.insert(row(of: root, entries), at: 0) }
            return OperationTimeline(
                entries: entries, startDate: startDate, duration: isSettled ? .zero : unfinishedDuration(entries))
        }
    }

    /// Until now, as long as there is something to wait for.
    private func unfinishedDuration(_ entries: [OperationTimeline.Entry]) -> Duration {
        root != nil || entries.contains { $0.finished == nil } ? elapsed : .zero
    }

    private func row(of root: Root, _ entries: [OperationTimeline.Entry]) -> OperationTimeline.Entry {
        let ends = entries.filter { $0.parent == root.id }.compactMap(\.finished)
        return OperationTimeline.Entry(
            id: root.id, name: root.name, typeName: "OperationQueue", started: .zero, running: .zero,
            finished: isSettled ? ends.max() ?? .zero : nil, outcome: isSettled ? .success : nil, isComposite: true,
            limit: root.limit)
    }
}

extension DispatchGroup {
    /// Suspends until as many have left the group as have entered it.
    fileprivate func end() async {
        await withCheckedContinuation { continuation in
            notify(queue: .global()) { continuation.resume() }
        }
    }
}

extension OperationTimeline.Entry {
    /// The entry with all its times later, or earlier: none before 0.
    func shifted(by offset: Duration) -> Self {
        func later(_ time: Duration) -> Duration { max(.zero, time + offset) }
        var entry = self
        entry.added = added.map(later)
        entry.started = started.map(later)
        entry.running = running.map(later)
        entry.cancelled = cancelled.map(later)
        entry.finished = finished.map(later)
        entry.waits = waits.map { .init(reason: $0.reason, from: later($0.from), to: $0.to.map(later)) }
        entry.retries = retries.map {
            .init(attempt: $0.attempt, error: $0.error, time: later($0.time), delay: $0.delay)
        }
        return entry
    }
}
