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
    case unitBegan(Int, unit: Int)
    case unitEnded(Int, unit: Int)
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
    /// How far an operation has come: when it has ended, or while something inside works.
    case progressed(Int, fraction: Double, hasEnded: Bool)
    /// How far the progress above those of these leaves has come at the end.
    case shared([Int], fraction: Double)
    /// How an operation looked at the end.
    case rest(Int, isFinished: Bool, isExecuting: Bool, isCancelled: Bool)
    /// An observer was told of an event of the operation, or of one that it has made.
    case emitted(Int, StressSignal)
    /// A condition is evaluated.
    case conditionBegan(Int, index: Int)
    case conditionEnded(Int, index: Int)
    /// The work of an operation that a condition needs.
    case prerequisiteBegan(String)
    case prerequisiteEnded(String, isCancelled: Bool)
    /// The clock is advanced to this time, in seconds.
    case advancing(to: Int)
    case advanced(to: Int)
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
    case unit(Int)
    case reason(Int)
    case given(Int)
    /// What conditions of an operation fail with, and what they need before.
    case condition(Int)
    case prerequisite

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
    /// What a unit of a collection fails with.
    case unit(Int)
    /// The completion of this unit was lost.
    case lostUnit(Int)
    /// The reason with which this operation was cancelled.
    case reason(Int)
    /// The outcome that an action gave this operation.
    case given(Int)
    /// A condition was not satisfied.
    case condition(Int, Int)
    /// The operation that a condition needs failed.
    case prerequisite(Int, Int)
    /// This operation took longer than its timeout.
    case timeout(Int)
    /// An attempt of this operation took longer than attempts may.
    case attemptTimeout(Int)
    /// A composite around it had what it requires.
    case heldAround(Int)
    /// It did not get a resource in time.
    case impatient(Int)
    /// Its circuit breaker was open, for this number of seconds, unless it was being tried.
    case circuitOpen(Int, Int?)
    case report(StressReport)
    /// It did not run because of the outcome of this operation, which another one may have awaited, too.
    case dependency(String, StressOutcome)
    case other(String)

    init(_ error: (any Error)?) {
        switch error {
        case nil: self = .success
        case is CancellationError: self = .cancelled
        case StressError.failed(let id)?: self = .failed(id)
        case StressError.unit(let unit)?: self = .unit(unit)
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
        case LostFinishError.unit(let name, _)?:
            self = name.split(separator: " ").last.flatMap { Int($0) }.map { .lostUnit($0) } ?? .other(name)
        case ConditionError.failed(let name, let condition, let cause)?:
            self = Self.condition(name, condition) { id, index in
                cause as? StressError == .condition(id) ? .condition(id, index) : nil
            }
        case ConditionError.prerequisiteFailed(let name, let condition, "prerequisite", StressError.prerequisite)?:
            self = Self.condition(name, condition) { .prerequisite($0, $1) }
        case ResourceError.heldByComposite(let name, _, _)?:
            self = Self.id(in: name).map { .heldAround($0) } ?? .other(name)
        case ResourceError.timedOut(let name, _, _, _)?: self = Self.id(in: name).map { .impatient($0) } ?? .other(name)
        case let error as CircuitOpenError:
            let seconds = error.retryAfter.map { Int($0.components.seconds) }
            self = Self.id(in: error.operation).map { .circuitOpen($0, seconds) } ?? .other("\(error)")
        case let error as OperationTimeoutError:
            let isAttempt = error.operation.contains(" attempt ")
            self =
                Self.id(in: error.operation).map { isAttempt ? .attemptTimeout($0) : .timeout($0) }
                ?? .other("\(error)")
        case let error?: self = .other("\(error)")
        }
    }

    private static func id(in name: String) -> Int? { Int(StressNode.name(in: name).dropFirst()) }

    private static func condition(
        _ name: String, _ condition: String, _ outcome: (_ id: Int, _ index: Int) -> StressOutcome?
    ) -> StressOutcome {
        guard let id = id(in: name), let index = Int(condition.dropFirst()) else { return .other(condition) }
        return outcome(id, index) ?? .other(condition)
    }

    /// Whether a compound counts it as a failure of its child.
    var isFailure: Bool {
        switch self {
        case .success, .cancelled: false
        case .report(let report):
            !report.isCancellation || !report.failures.isEmpty || report.reason?.isFailure == true
        case .reason(let id): !StressError.isMild(id)
        case .dependency(_, let root): root.isFailure
        case .failed, .lost, .unit, .lostUnit, .given, .condition, .prerequisite, .timeout, .attemptTimeout,
            .heldAround,
            .impatient,
            .circuitOpen,
            .other:
            true
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

    var count: Int { condition.withLock { entries.count } }

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
