import Dispatch
import Foundation

/// One run over a collection: ``CollectionSchedule`` decides, a lock guards it, and what follows is done after unlocking.
///
/// Who holds the driver: the workers, and the completions of the units in flight. It holds the work, and with it the
/// object that does it, until the run is over. Afterwards it is an empty shell, which a completion that somebody keeps
/// may hold for as long as it likes.
final class CollectionDriver: @unchecked Sendable {
    typealias UnitCompletion = @Sendable ((any Error)?) -> Void
    typealias Completion = @Sendable ([(any Error)?]) -> Void

    /// Where units begin. Each block drains its autorelease pool, so that a long run of quick items does not fill one.
    private static let queue = DispatchQueue(
        label: "OperationKit.Coordination", attributes: .concurrent, autoreleaseFrequency: .workItem)

    /// After how many units a worker goes to the end of the queue, so that others get their turn.
    private static let share = 256

    private let qos: DispatchQoS
    private let lock = NSLock()
    // Whoever has the lock has the schedule for itself, so the run-time checks of that would only cost time.
    @exclusivity(unchecked) private var schedule: CollectionSchedule
    private var units: CollectionUnits?
    private var completion: Completion?
    private let unitEnded: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - units: The work.
    ///   - unitEnded: Called after each end of a unit but before the end of the run, on the thread that reported it.
    ///   - completion: Called once, on the thread that reported the last end.
    init(
        _ units: CollectionUnits, qos: DispatchQoS = .unspecified, unitEnded: (@Sendable () -> Void)? = nil,
        completion: @escaping Completion
    ) {
        self.units = units
        self.qos = qos
        self.unitEnded = unitEnded
        self.completion = completion
        unsafe schedule = CollectionSchedule(
            count: units.count, limit: units.limit, stopsAtFirstFailure: units.failurePolicy == .cancelRemaining)
    }

    /// Reads and changes the schedule, with the lock held.
    private func withSchedule<Value>(_ body: (inout CollectionSchedule) -> Value) -> Value {
        lock.withLock { unsafe body(&schedule) }
    }

    /// How many units have ended.
    var endedCount: Int { withSchedule { $0.endedCount } }

    /// Begins the run. To be called once.
    func start() {
        follow(withSchedule { $0.started() })
    }

    /// Has no further unit begin. Those in flight are waited for.
    func cancel() {
        let units = lock.withLock { self.units }
        follow(withSchedule { $0.cancelled() })
        units?.cancelRunning?()
    }

    private func follow(_ order: CollectionSchedule.Order?) {
        switch order {
        case nil:
            return
        case .sendForWorker:
            CollectionDriver.queue.performAsync(qos: qos) {
                let (step, order) = self.withSchedule { $0.workerCame() }
                self.follow(order)
                self.work(step)
            }
        case .end(let errors):
            end(errors)
        }
    }

    /// What a worker does: it begins one unit after the other.
    private func work(_ first: CollectionSchedule.Step) {
        // The units, and not the function of theirs: that one would come back in two wrappers for each call.
        guard let units = lock.withLock({ units }) else { return }
        var next = first
        for _ in 0..<CollectionDriver.share {
            guard case .begin(let index) = next else { return }
            units.begin(index) { [self] error in ended(index, error) }
            let (step, order) = withSchedule { $0.returned(index) }
            follow(order)
            next = step
        }
        if next != .leave { CollectionDriver.queue.performAsync(qos: qos) { [next] in self.work(next) } }
    }

    private func ended(_ index: Int, _ error: (any Error)?) {
        let (isAccepted, order) = withSchedule { $0.ended(index, error: error) }
        if isAccepted { unitEnded?() }
        follow(order)
    }

    private func end(_ errors: [(any Error)?]) {
        // Released after unlocking and before the call: whoever is told that the run is over finds nothing held by it.
        var units: CollectionUnits?
        let completion = lock.withLock {
            swap(&units, &self.units)
            defer { self.completion = nil }
            return self.completion
        }
        units = nil
        completion?(errors)
    }
}
