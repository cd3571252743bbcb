import Foundation
import OperationKit

/// What happens while a program runs. The order in the log is the order in which it happened.
enum StressEvent: Equatable, Sendable {
    /// The operation was made.
    case built(Int)
    /// The work of a leaf, or the preparation of a compound, has begun.
    case began(Int)
    /// The work of a leaf is over; it finishes after this.
    case ended(Int)
    /// `asyncCompletionBlock` was called.
    case completed(Int, StressOutcome, isCancelled: Bool)
    /// `completionBlock` was called.
    case finished(Int)
    /// The external dependency has ended.
    case externalEnded
    /// An action was carried out. `isAccepted` is what `finish` returned, whether an addition did not throw, and for
    /// others, whether their target was there.
    case acted(Int, isAccepted: Bool)
    /// What the task that awaits the root was told.
    case awaited(StressOutcome)
    /// How an operation looked at the end.
    case rest(Int, isFinished: Bool, isExecuting: Bool, isCancelled: Bool)
    /// An observer was told of an event of the operation.
    case emitted(Int, StressSignal)
    /// The program did not end in time. What is still open.
    case hung([String])
    /// The library reported a mistake, of which there is none in programs.
    case reported(String)
    /// Objects that outlived the program.
    case leaked([String])
}

/// The errors of programs.
enum StressError: CancellableError, Equatable {
    case failed(Int)
    case reason(Int)
    case given(Int)

    /// Some reasons only say why something was cancelled.
    var isCancelled: Bool { if case .reason(let id) = self { StressError.isMild(id) } else { false } }

    /// Whether the reason with which an operation is cancelled is no failure.
    static func isMild(_ id: Int) -> Bool { id % 4 == 3 }
}

/// How an operation ended, in a form that can be compared.
indirect enum StressOutcome: Equatable, Sendable {
    case success
    case cancelled
    /// What a leaf fails with.
    case failed(Int)
    /// The `finish` of this leaf was lost.
    case lost(Int)
    /// The reason with which this operation was cancelled.
    case reason(Int)
    /// The outcome that an action gave this operation.
    case given(Int)
    case report(StressReport)
    /// It did not run because of the outcome of this operation, which another one may have awaited, too.
    case dependency(String, StressOutcome)
    case other(String)

    init(_ error: (any Error)?) {
        switch error {
        case nil: self = .success
        case is CancellationError: self = .cancelled
        case StressError.failed(let id)?: self = .failed(id)
        case StressError.reason(let id)?: self = .reason(id)
        case StressError.given(let id)?: self = .given(id)
        case CompoundOperationError.suboperationFailure(let name, let errors)?:
            self = .report(
                StressReport(isCancellation: false, name: StressNode.name(in: name), failures: errors.map { .init($0) })
            )
        case CompoundOperationError.cancelled(let name, let errors, let reason)?:
            self = .report(
                StressReport(
                    isCancellation: true, name: StressNode.name(in: name), failures: errors.map { .init($0) },
                    reason: reason.map { StressOutcome($0) }))
        case DependencyError.dependencyFailed(_, let root, let error)?:
            self = .dependency(StressNode.name(in: root), StressOutcome(error))
        case LostFinishError.operation(let name)?:
            self = Self.id(in: name).map { .lost($0) } ?? .other(name)
        case let error?: self = .other("\(error)")
        }
    }

    private static func id(in name: String) -> Int? { Int(StressNode.name(in: name).dropFirst()) }

    /// Whether a compound counts it as a failure of its child.
    var isFailure: Bool {
        switch self {
        case .success, .cancelled: false
        case .report(let report):
            !report.isCancellation || !report.failures.isEmpty || report.reason?.isFailure == true
        case .reason(let id): !StressError.isMild(id)
        case .dependency(_, let root): root.isFailure
        case .failed, .lost, .given, .other: true
        }
    }
}

/// The error of a compound.
struct StressReport: Equatable, Sendable {
    struct Failure: Equatable, Sendable {
        var name: String
        var index: Int
        var outcome: StressOutcome
        var siblings: Int?
        /// How many siblings did not run because of it.
        var blocked: Int

        init(name: String, index: Int, outcome: StressOutcome, siblings: Int?, blocked: Int = 0) {
            self.name = name
            self.index = index
            self.outcome = outcome
            self.siblings = siblings
            self.blocked = blocked
        }

        init(_ error: SuboperationError) {
            self.init(
                name: StressNode.name(in: error.name), index: error.index, outcome: StressOutcome(error.error),
                siblings: error.siblingCount, blocked: error.blockedCount)
        }
    }

    var isCancellation: Bool
    var name: String
    var failures: [Failure]
    var reason: StressOutcome?
}

/// The log of a run, and the count of what is still to come.
final class StressLog: @unchecked Sendable {
    private let condition = NSCondition()
    private var entries: [StressEvent] = []
    private var open = 0

    func add(_ event: StressEvent) {
        condition.withLock { entries.append(event) }
    }

    var events: [StressEvent] { condition.withLock { entries } }

    /// Something has to end before the program has: an operation, a thread, a hop.
    func opened() {
        condition.withLock { open += 1 }
    }

    func closed() {
        condition.withLock {
            open -= 1
            if open == 0 { condition.broadcast() }
        }
    }

    /// Blocks until everything has ended.
    ///
    /// - Returns: Whether it has, in time.
    @available(*, noasync)
    func waitUntilClosed(before deadline: Date) -> Bool {
        condition.withLock {
            while open > 0 { if !condition.wait(until: deadline) { return open <= 0 } }
            return true
        }
    }
}
