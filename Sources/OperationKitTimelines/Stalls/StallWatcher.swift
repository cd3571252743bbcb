import Dispatch
import Foundation
import OperationKit

/// Watches all operations, and reports those that execute for too long.
///
/// A composite waits for what is inside it, so it is not looked at as long as a child of it executes: that child is watched
/// itself. One in which children come and go works.
final class StallWatcher: OperationObserver {
    private struct Watch {
        /// `nil` as long as only the start of a child is known.
        var operation: WeakOperation?
        var parent: OperationID?
        var start = Duration.zero
        var executingChildren = 0
        /// When a child has ended for the last time, or else when the operation has started.
        var lastActivity = Duration.zero
        /// How far its children had come when that was last looked at; `nil` if one has ended since.
        var fraction: Double?
        var isReported = false
    }

    private let state = Guarded((watches: [OperationID: Watch](), isAlarmSet: false, isStopped: false))
    private let threshold: Duration
    private let now: @Sendable () -> Duration
    /// Sleeps on the clock until a time; `nil` for the clock of the system, on which no thread has to be there for that.
    private let sleep: (@Sendable (Duration) async -> Void)?
    private let handler: @Sendable (StallReport) -> Void
    /// On which operations are examined, and the handler is called.
    private let queue = DispatchQueue(label: "OperationKit.stalls", qos: .userInitiated)

    init(threshold: Duration, clock: some Clock<Duration>, handler: @escaping @Sendable (StallReport) -> Void) {
        self.threshold = min(threshold, .latest)
        self.handler = handler
        let origin = clock.now
        now = { origin.duration(to: clock.now) }
        if clock is ContinuousClock {
            sleep = nil
        } else {
            // Not for a time: it begins when the task does, which may be later.
            sleep = { due in try? await clock.sleep(until: origin.advanced(by: due), tolerance: nil) }
        }
    }

    /// Ends all reports, and releases what is known of operations.
    func stop() {
        AsyncOperation.removeGlobalObserver(self)
        // Released after unlocking.
        let released = state.withLock { state in
            defer { (state.watches, state.isStopped) = ([:], true) }
            return state.watches
        }
        withExtendedLifetime(released) {}
    }

    /// The number of operations that are watched.
    var count: Int { state.withLock { $0.watches.count } }

    /// Waits until the reports up to now have been handed over.
    func waitForReports() {
        queue.sync {}
    }

    // MARK: - Events

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .started: started(operation, event.operation)
        case .finished: ended(event.operation)
        default: break
        }
    }

    private func started(_ operation: AsyncOperation, _ id: OperationID) {
        let parent = operation.enclosingComposite?.observationID
        let fraction = operation.childrenFraction
        let reference = WeakOperation(operation)
        let now = now()
        let needsAlarm = state.withLock { state in
            if state.isStopped { return false }
            if let parent { state.watches[parent, default: Watch()].executingChildren += 1 }
            var watch = state.watches[id] ?? Watch()
            (watch.operation, watch.parent, watch.fraction) = (reference, parent, fraction)
            (watch.start, watch.lastActivity) = (now, now)
            state.watches[id] = watch
            defer { state.isAlarmSet = true }
            return !state.isAlarmSet
        }
        if needsAlarm { setAlarm(after: threshold) }
    }

    private func ended(_ id: OperationID) {
        let now = now()
        let released = state.withLock { state -> Watch? in
            // That of a composite which executes for longer than anything is watched waits for its children.
            guard state.watches[id]?.operation != nil, let watch = state.watches.removeValue(forKey: id) else {
                return nil
            }
            guard let parent = watch.parent, var around = state.watches[parent] else { return watch }
            around.executingChildren -= 1
            (around.lastActivity, around.fraction) = (now, nil)
            state.watches[parent] = around.executingChildren == 0 && around.operation == nil ? nil : around
            return watch
        }
        withExtendedLifetime(released) {}
    }

    // MARK: - Alarms

    private func setAlarm(after time: Duration) {
        let due = now() + time
        guard let sleep else {
            let nanoseconds = Int(clamping: time.nanoseconds)
            return queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { [weak self] in self?.look(due) }
        }
        Task { [weak self, queue] in
            await sleep(due)
            guard let watcher = self else { return }
            queue.async { watcher.look(due) }
        }
    }

    /// Reports what has executed for too long, oldest first, and sets the next alarm.
    private func look(_ due: Duration) {
        // Clocks for tests may have a time that stands still. That must not become an endless loop.
        let now = max(now(), due)
        let suspects = state.withLock { state in
            state.watches.filter { isDue($0.value, at: now) || needsFraction($0.value) }.map {
                (id: $0.key, watch: $0.value)
            }
        }
        for (id, watch) in suspects.sorted(by: { ($0.watch.start, $0.id) < ($1.watch.start, $1.id) }) {
            // The operation is not held while the handler is called.
            if let report = report(of: watch, id, at: now) { handler(report) }
        }
        let next = state.withLock { state -> Duration? in
            let open = state.watches.values.lazy.filter { $0.operation != nil && !$0.isReported }
            // Children that execute are watched themselves.
            let times = open.map { ($0.executingChildren > 0 ? now : $0.lastActivity) + self.threshold }
            state.isAlarmSet = !times.isEmpty
            return times.min()
        }
        // Not for each of many operations, one soon after the other.
        if let next { setAlarm(after: max(next - self.now(), threshold / 16)) }
    }

    private func isDue(_ watch: Watch, at now: Duration) -> Bool {
        watch.operation != nil && !watch.isReported && watch.executingChildren == 0
            && watch.lastActivity + threshold <= now
    }

    /// Whether it is to be noted how far the children have come, to see later whether one that is not watched has ended.
    private func needsFraction(_ watch: Watch) -> Bool {
        watch.operation != nil && !watch.isReported && watch.executingChildren == 0 && watch.fraction == nil
    }

    private func report(of watch: Watch, _ id: OperationID, at now: Duration) -> StallReport? {
        guard let operation = watch.operation?.operation else {
            ended(id)
            return nil
        }
        let fraction = operation.childrenFraction
        let isStalled = state.withLock { state in
            guard var current = state.watches[id] else { return false }
            let isDue = isDue(current, at: now)
            guard isDue || needsFraction(current) else { return false }
            current.isReported = isDue && current.fraction == fraction
            // When what is not watched has ended is not known.
            if isDue, !current.isReported { current.lastActivity = now }
            current.fraction = fraction
            state.watches[id] = current
            return current.isReported
        }
        return isStalled ? StallReport(operation, id, age: now - watch.start) : nil
    }
}

/// A reference to an operation that does not keep it alive. An object, because a copy of a weak reference may hold
/// the operation for a moment, and be the last one to release it, with a lock held.
private final class WeakOperation: @unchecked Sendable {
    // Not changed after the initialization.
    private(set) weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
        self.operation = operation
    }
}
