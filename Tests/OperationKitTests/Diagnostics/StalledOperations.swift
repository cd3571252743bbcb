import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// Reports operations that execute for longer than 30 seconds, of a clock that the test advances: only those that it is to
/// watch, so that operations of other tests are not in the way.
struct StalledOperations {
    static let threshold = Duration.seconds(30)

    let clock = ManualClock()
    let watcher: StallWatcher
    private let reports = Shared<[StallReport]>([])

    init() {
        let reports = reports
        watcher = StallWatcher(threshold: Self.threshold, clock: clock) { report in
            reports.change { $0.append(report) }
        }
    }

    /// Watches an operation, and all that is inside it.
    @discardableResult
    func watch<Watched: AsyncOperation>(_ operation: Watched) -> Watched {
        operation.addObserver(watcher)
        return operation
    }

    /// Waits until so many operations are executing of which the watcher has been told. That may be after they have begun
    /// or ended, if another thread tells it.
    func watched(_ count: Int, _ location: SourceLocation = #_sourceLocation) async {
        await eventually("\(watcher.count) are watched", location) { watcher.count == count }
    }

    /// The names of the operations that were reported.
    var names: [String] { reports.value.map(\.name) }

    /// Waits for reports.
    func reports(_ count: Int = 1, _ location: SourceLocation = #_sourceLocation) async -> [StallReport] {
        await eventually("only \(names) were reported", location) { reports.value.count >= count }
        return reports.value
    }

    /// Lets time pass, and waits until all that is due then has been reported: until an operation was that stalls last.
    func settle(after duration: Duration = threshold, _ location: SourceLocation = #_sourceLocation) async {
        let last = UUID().uuidString
        if duration > Self.threshold { clock.advance(by: duration - Self.threshold) }
        let sentinel = watch(ScriptedOperation.idle(last))
        sentinel.start()
        await clock.pass(Self.threshold)
        await eventually("the clock has not been advanced to what comes last", location) { names.contains(last) }
        sentinel.finish()
        reports.change { reports in reports.removeAll { $0.name == last } }
    }

    /// The description of a report without what depends on the level of the diagnostics: ages, origin and call stack.
    static func text(_ report: StallReport) -> String {
        let lines = report.description.split(separator: "\n").dropLast(report.callStack.count)
        return withoutAges(lines.joined(separator: "\n").replacing(/\sIt was started on [^\n]*/, with: ""))
    }
}
