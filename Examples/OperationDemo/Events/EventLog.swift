import Dispatch
import Foundation

/// The one source of what is printed and drawn.
///
/// An event gets its time and its place under one lock, and the sink is called under it too: what is printed is in the true
/// order, whatever threads the events come from. The sink must not call back.
final class EventLog: @unchecked Sendable {
    typealias Sink = @Sendable (Event) -> Void

    private struct Waiter {
        let subject: Subject
        let stage: Stage
        let continuation: CheckedContinuation<Void, Never>
    }

    private let clock = ContinuousClock()
    private let origin: ContinuousClock.Instant
    private let sink: Sink
    private let lock = NSLock()
    private var subjectCount = 0
    private var recorded: [Event] = []
    private var histories: [Subject: [Event]] = [:]
    private var waiters: [Waiter] = []
    private let unsettled = DispatchGroup()

    init(sink: @escaping Sink) {
        self.sink = sink
        origin = clock.now
    }

    /// All events so far.
    var events: [Event] {
        lock.withLock { recorded }
    }

    /// The time on the log's clock.
    var now: Duration {
        clock.now - origin
    }

    /// Enters a new operation. ``settled()`` waits for its end from now on: for its completion, and for that of its work.
    func subject(named name: String) -> Subject {
        lock.withLock {
            defer { subjectCount += 1 }
            return Subject(name: name, number: subjectCount)
        }
    }

    /// Announces that something outstanding has to be recorded before the log is settled; `fulfil()` takes it back.
    func expect() {
        unsettled.enter()
    }

    func fulfil() {
        unsettled.leave()
    }

    func record(_ stage: Stage, of subject: Subject, detail: String? = nil) {
        let reached = lock.withLock {
            let time = now
            let remark = Event.remark(on: stage, at: time, after: histories[subject, default: []])
            let details = [detail, remark].compactMap(\.self)
            let event = Event(
                time: time, subject: subject, stage: stage,
                detail: details.isEmpty ? nil : details.joined(separator: ", "))
            recorded.append(event)
            histories[subject, default: []].append(event)
            sink(event)
            return takeWaiters(for: subject, stage)
        }
        for waiter in reached { waiter.continuation.resume() }
    }

    /// Forgets the events so far. Operations that are under way go on being recorded.
    func clear() {
        lock.withLock {
            recorded = []
            histories = [:]
        }
    }

    /// Suspends until the stage has been recorded.
    func reached(_ stage: Stage, of subject: Subject) async {
        await withCheckedContinuation { continuation in
            let isReached = lock.withLock {
                if histories[subject, default: []].contains(where: { $0.stage == stage }) { return true }
                waiters.append(Waiter(subject: subject, stage: stage, continuation: continuation))
                return false
            }
            if isReached { continuation.resume() }
        }
    }

    /// Suspends until everything that was expected has been recorded.
    func settled() async {
        await withCheckedContinuation { continuation in
            unsettled.notify(queue: .global()) { continuation.resume() }
        }
    }

    private func takeWaiters(for subject: Subject, _ stage: Stage) -> [Waiter] {
        if waiters.isEmpty { return [] }
        let isReached = { (waiter: Waiter) in waiter.subject == subject && waiter.stage == stage }
        defer { waiters.removeAll(where: isReached) }
        return waiters.filter(isReached)
    }
}
