import Dispatch
import Foundation
import OperationKit

/// Watches all operations, and reports those that execute for too long.
///
/// A composite waits for what is inside it, so it is not looked at as long as a child of it executes: that child is watched
/// itself. One in which children come and go works.
final class StallWatcher: OperationObserver {
    struct Watch {
        /// An object holds it: a copy of a weak reference may be the last one to release the operation, with a lock held.
        let operation: Reference<WeakReference<AsyncOperation>>
        let isComposite: Bool
        let start: Duration
        /// When something inside it has started or ended for the last time, or else when it has started itself.
        var lastActivity: Duration
        /// How far its children had come at the last look; `nil` if one that is watched has started or ended since.
        var progress: String?
        var isReported = false
    }

    struct State {
        var watches: [OperationID: Watch] = [:]
        var isAlarmSet = false
        var isStopped = false
    }

    let state = Locked(State())
    private let threshold: Duration
    private let time: TimeSource
    private let timer: DeadlineTimer
    private let alarm = LatestDeadline()
    private let handler: @Sendable (StallReport) -> Void
    /// On which operations are examined, and the handler is called.
    let queue = DispatchQueue(label: "OperationKit.stalls", qos: .userInitiated)

    init(threshold: Duration, clock: some Clock<Duration>, handler: @escaping @Sendable (StallReport) -> Void) {
        self.threshold = threshold.bounded
        self.handler = handler
        time = TimeSource(clock)
        timer = clock.timer
    }

    /// Ends all reports, and releases what is known of operations.
    func stop() {
        AsyncOperation.removeGlobalObserver(self)
        // Released after unlocking.
        _ = state.withLock { state in
            state.isStopped = true
            return exchange(&state.watches, with: [:])
        }
        alarm.end()
    }

    // MARK: - Events

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .started: started(operation, event.operation)
        case .finished: ended(event.operation, in: operation.enclosingComposite?.observationID)
        default: break
        }
    }

    private func started(_ operation: AsyncOperation, _ id: OperationID) {
        let now = time.now()
        let watch = Watch(
            operation: Reference(WeakReference(operation)), isComposite: operation.isComposite, start: now,
            lastActivity: now, progress: operation.childrenProgress)
        let needsAlarm = state.withLock { state in
            if state.isStopped { return false }
            state.watches[id] = watch
            return !exchange(&state.isAlarmSet, with: true)
        }
        if needsAlarm { setAlarm(at: now + threshold / 16) }
    }

    private func ended(_ id: OperationID, in composite: OperationID?) {
        let now = time.now()
        // Released after unlocking.
        _ = state.withLock { state in
            if let composite {
                state.watches[composite]?.lastActivity = now
                state.watches[composite]?.progress = nil
            }
            return state.watches.removeValue(forKey: id)
        }
    }

    // MARK: - Alarms

    private func setAlarm(at due: Duration) {
        alarm.replace {
            timer.arm(for: self, after: max(.zero, due - time.now())) { watcher in
                guard let watcher = watcher as? StallWatcher else { return }
                watcher.queue.async { watcher.look(due) }
            }
        }
    }

    /// Reports what has executed for too long, oldest first, and sets the next alarm.
    private func look(_ due: Duration) {
        // Clocks for tests may have a time that stands still. That must not become an endless loop.
        let now = max(time.now(), due)
        let watches = state.withLock { $0.watches }
        // A composite is around what executes, which may have been added to it meanwhile.
        let busy = Set(watches.values.compactMap { $0.operation.value.object?.enclosingComposite?.observationID })
        let suspects = watches.filter { id, watch in
            !watch.isReported && !busy.contains(id) && (watch.isComposite || watch.lastActivity <= now - threshold)
        }
        var described: Set<OperationID> = []
        for (id, watch) in suspects.sorted(by: { ($0.value.start, $0.key) < ($1.value.start, $1.key) }) {
            // The operation is not held while the handler is called.
            if let report = report(of: watch, id, at: now, described: &described) { handler(report) }
        }
        let goesOn = state.withLock { state in
            state.isAlarmSet = state.watches.values.contains { !$0.isReported }
            return state.isAlarmSet
        }
        // Handlers may have taken their time.
        if goesOn { setAlarm(at: max(now, time.now()) + threshold / 16) }
    }

    private func report(
        of watch: Watch, _ id: OperationID, at now: Duration, described: inout Set<OperationID>
    ) -> StallReport? {
        guard let operation = watch.operation.value.object else {
            ended(id, in: nil)
            return nil
        }
        let progress = operation.childrenProgress
        let isStalled = state.withLock { state in
            guard var current = state.watches[id] else { return false }
            if current.progress == progress {
                current.isReported = current.lastActivity <= now - threshold
            } else {
                // Something that is not watched has ended since the last look.
                if current.progress != nil { current.lastActivity = now }
                current.progress = progress
            }
            state.watches[id] = current
            return current.isReported
        }
        return isStalled ? StallReport(operation, id, age: now - watch.start, described: &described) : nil
    }
}
