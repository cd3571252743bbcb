import Dispatch
import Foundation

/// Watches all operations, and reports those that execute for too long. It lives as long as it observes them, and its alarm
/// is not about to be examined.
final class StallWatcher: OperationObserver {
    typealias Handler = @Sendable (StallReport) -> Void
    private typealias Machine = StallStateMachine<WeakOperation>

    private struct State {
        var machine: Machine
        /// The deadline of the machine's alarm.
        var deadline: ArmedDeadline?
        var isStopped = false
    }

    private let state: Locked<State>
    private let time: TimeSource
    private let timer: DeadlineTimer
    private let handler: Handler
    /// On which operations are examined, and the handler is called, so that neither holds up the deadlines of operations.
    private let queue = DispatchQueue.makeDedicated()

    init(threshold: Duration, clock: any Clock<Duration>, handler: @escaping Handler) {
        state = Locked(State(machine: Machine(threshold: min(threshold, .century))))
        time = TimeSource(clock)
        timer = clock.timer
        self.handler = handler
    }

    /// Prints a report to standard error.
    static func print(_ report: StallReport) {
        FileHandle.standardError.write(Data("\(report)\n".utf8))
    }

    /// Ends all reports, and releases what is known of operations.
    func stop() {
        AsyncOperation.removeGlobalObserver(self)
        // Released after unlocking: that disarms the deadline.
        let released = state.withLock { state in
            state.isStopped = true
            return (
                exchange(&state.machine, with: Machine(threshold: state.machine.threshold)), state.deadline.take()
            )
        }
        withExtendedLifetime(released) {}
    }

    /// The number of operations that are watched.
    var count: Int { state.withLock { $0.machine.count } }

    /// Waits until the reports up to now have been handed over.
    func waitForReports() {
        queue.sync {}
    }

    // MARK: - Events

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .started: started(operation, event.operation)
        case .finished: ended(event.operation)
        case .added, .waiting, .running, .cancelled, .retrying: break
        }
    }

    private func started(_ operation: AsyncOperation, _ id: OperationID) {
        let parent = operation.withState({ $0.membership.parent })?.operation?.observationID
        let fraction = operation.children?.fraction ?? 0
        let reference = WeakOperation(operation)
        let now = time.now()
        let alarm = state.withLock { state in
            state.isStopped ? nil : state.machine.started(id, reference, in: parent, fraction: fraction, at: now)
        }
        set(alarm)
    }

    private func ended(_ id: OperationID) {
        let now = time.now()
        let (reference, alarm) = state.withLock { $0.machine.ended(id, at: now) }
        withExtendedLifetime(reference) {}
        set(alarm)
    }

    // MARK: - Alarms

    private func set(_ alarm: Machine.Alarm?) {
        guard let alarm else { return }
        let armed = timer.arm(for: self, after: alarm.time - time.now()) { $0.rang(alarm) }
        // Released after unlocking, which disarms a deadline.
        let replaced = state.withLock { state in
            // It may have rung, and the next one may have been set, or reports have ended meanwhile.
            !state.isStopped && state.machine.alarm == alarm ? exchange(&state.deadline, with: armed) : armed
        }
        withExtendedLifetime(replaced) {}
    }

    /// Called on a thread of the timer's, whose other deadlines wait meanwhile.
    private func rang(_ alarm: Machine.Alarm) {
        // Clocks for tests may have a time that stands still. That must not become an endless loop.
        let now = max(time.now(), alarm.time)
        let (suspects, next) = state.withLock { $0.machine.rang(alarm, at: now) }
        if !suspects.isEmpty {
            queue.performAsync { for suspect in suspects { self.examine(suspect, at: now) } }
        }
        set(next)
    }

    private func examine(_ suspect: Machine.Suspect, at now: Duration) {
        // The operation is not held while the handler is called.
        if let report = report(of: suspect, at: now) { handler(report) }
    }

    private func report(of suspect: Machine.Suspect, at now: Duration) -> StallReport? {
        guard let operation = suspect.element.operation else {
            ended(suspect.id)
            return nil
        }
        let fraction = operation.children?.fraction ?? 0
        let (age, alarm) = state.withLock { $0.machine.examined(suspect.id, fraction: fraction, at: now) }
        set(alarm)
        return age.flatMap { StallReport(operation, suspect.id, age: $0) }
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
