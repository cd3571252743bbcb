import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

/// Reports operations that execute for longer than 30 seconds, of a clock that the test advances: only those that it is to
/// watch, so that operations of other tests are not in the way.
final class StalledOperations: Sendable {
    let clock = ManualClock()
    let watcher: StallWatcher
    let reports = Shared<[StallReport]>([])

    init() {
        let reports = reports
        watcher = StallWatcher(threshold: .seconds(30), clock: clock) { report in reports.change { $0.append(report) } }
    }

    /// Nothing waits for the next look any more.
    deinit {
        watcher.stop()
        clock.advance(by: .seconds(1_000_000))
    }

    /// Watches an operation, and all that is inside it.
    @discardableResult
    func watch<Watched: AsyncOperation>(_ operation: Watched) -> Watched {
        operation.addObserver(watcher)
        return operation
    }

    /// Watches an operation, and starts it.
    func start<Watched: AsyncOperation>(_ operation: Watched) -> Watched {
        watch(operation).start()
        return operation
    }

    /// Waits until the watcher has been told of so many operations, which another thread may do.
    func watched(_ count: Int, _ location: SourceLocation = #_sourceLocation) async {
        await eventually("\(watcher.count) are watched", location) { watcher.count == count }
    }

    var names: [String] { reports.value.map(\.name) }

    /// The time between two looks.
    static let interval = Duration.seconds(30) / 16

    /// Lets time pass, from one deadline to the next, until something has happened. If all of it passed in one step, that could
    /// end during a look, which finds nothing yet. The next look would be due later, and never come.
    func pass(_ location: SourceLocation = #_sourceLocation, until condition: () -> Bool) async {
        await eventually("it has not happened after \(clock.now.offset)", location) {
            if condition() { return true }
            if let next = clock.deadlines.first { clock.advance(by: max(.zero, next - clock.now.offset)) }
            return false
        }
    }

    /// Lets time pass until there is a report.
    func report(_ location: SourceLocation = #_sourceLocation) async -> StallReport? {
        await pass(location) { !reports.value.isEmpty }
        return reports.value.first
    }

    /// Lets so much time pass that all that stalls has been reported: twice until an operation that starts now is.
    func settle(_ location: SourceLocation = #_sourceLocation) async {
        for _ in 0..<2 {
            let last = watch(ScriptedOperation.idle("last"))
            last.start()
            await eventually("the clock has not been advanced far enough", location) {
                clock.advance(by: .seconds(5))
                return names.contains("last")
            }
            watcher.waitForReports()
            last.finish()
            reports.change { reports in reports.removeAll { $0.name == "last" } }
        }
    }

    /// The description of a report without what depends on the level of the diagnostics: ages, origin and call stack.
    static func text(_ report: StallReport) -> String {
        let lines = report.description.split(separator: "\n").dropLast(report.callStack.count)
        return withoutAges(lines.joined(separator: "\n").replacing(/\sIt was started on [^\n]*/, with: ""))
    }
}

extension StallWatcher {
    /// The number of operations that are watched.
    var count: Int { state.withLock { $0.watches.count } }

    /// Waits until the reports up to now have been handed over.
    func waitForReports() {
        queue.sync {}
    }
}
