import Dispatch
import Foundation
import OperationKit

/// A queue and a log, and the means to create operations for them.
///
/// Durations are given in seconds at normal speed.
final class Bench: @unchecked Sendable {
    let log: EventLog
    let queue: OperationQueue
    private let speed: Double

    init(queue: OperationQueue, speed: Double, sink: @escaping EventLog.Sink) {
        self.queue = queue
        self.speed = speed
        log = EventLog(sink: sink)
    }

    func sync(_ name: String, _ seconds: Double, failure: (any Error)? = nil) -> SyncWork {
        SyncWork(report: reporter(name), seconds: seconds / speed, failure: failure)
    }

    func naive(_ name: String, _ seconds: Double) -> NaiveWork {
        NaiveWork(report: reporter(name), seconds: seconds / speed)
    }

    func async(_ name: String, _ seconds: Double, failure: (any Error)? = nil) -> TimedWork {
        TimedWork(report: reporter(name), seconds: seconds / speed, failure: failure)
    }

    /// A compound of asynchronous operations that take as long as given, as many at the same time as the queue allows.
    func compound(_ name: String, _ seconds: [Double]) -> ReportingCompound {
        let reporter = reporter(name)
        let children = seconds.enumerated().map { index, seconds in async("\(name)-\(index + 1)", seconds) }
        return compound(reporter, children, width: queue.maxConcurrentOperationCount)
    }

    /// A typed step that takes its time and then makes its output.
    func step<Input, Output>(
        _ name: String, _ seconds: Double, of whole: Whole, isFirst: Bool = false,
        _ work: @escaping @Sendable (Input) throws -> Output
    ) -> DataStep<Input, Output> {
        let step = DataStep(report: reporter(name), of: whole, isFirst: isFirst, seconds: seconds / speed, work)
        Self.reportEnqueued(step)
        return step
    }

    /// The appearance of a macro or a waterfall in the log.
    func whole(_ name: String) -> Whole {
        Whole(report: reporter(name))
    }

    /// An operation of any class.
    func make<Made>(_ name: String, _ seconds: Double, _ make: (Reporter, Double) -> Made) -> Made {
        make(reporter(name), seconds / speed)
    }

    func compound(_ name: String, _ children: [any ReportingOperation], width: Int) -> ReportingCompound {
        compound(reporter(name), children, width: width)
    }

    /// Puts operations on the queue, in order. The children of a compound are on the compound's own.
    func enqueue(_ operations: any ReportingOperation...) {
        for operation in operations {
            Self.reportEnqueued(operation)
            queue.addOperation(operation)
        }
    }

    func cancel(_ operation: any ReportingOperation) {
        operation.report(.cancelCalled)
        operation.cancel()
    }

    /// A time that the speed shortens.
    func duration(_ seconds: Double) -> Duration {
        .seconds(seconds / speed)
    }

    /// Suspends for a time that the speed shortens.
    func pause(_ seconds: Double) async {
        try? await Task.sleep(for: duration(seconds))
    }

    /// Calls `body` on another thread after a time that the speed shortens.
    func after(_ seconds: Double, _ body: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds / speed, execute: body)
    }

    func reporter(_ name: String) -> Reporter {
        Reporter(name: name, log: log)
    }

    private func compound(_ report: Reporter, _ children: [any ReportingOperation], width: Int) -> ReportingCompound {
        ReportingCompound(report: report, children: children, width: width)
    }

    private static func reportEnqueued(_ operation: any ReportingOperation) {
        operation.report(.enqueued)
        guard let compound = operation as? ReportingCompound else { return }
        for child in compound.children { reportEnqueued(child) }
    }
}
