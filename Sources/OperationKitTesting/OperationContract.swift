public import Foundation
import OperationKit

/// What every operation has to do, whatever its work is: finds out whether a class does it.
///
/// ```swift
/// final class Load: AsyncOperation, @unchecked Sendable {
///     override func main() {
///         DispatchQueue.global().async { self.finish() }
///     }
/// }
///
/// let violations = await OperationContract.violations { Load() }
/// assert(violations.isEmpty, "\(violations)")
/// ```
///
/// Operations of the class are put through every situation: run on a queue and by hand, cancelled before the start, while they work and at
/// random moments on other threads, finished from outside, awaited, released. Each operation that does not do what it should is a
/// ``Violation``, with a sentence that says how to mend the class. A violation may spoil other situations, such as an operation that never
/// finishes. These are left out then, and ``Report/situations`` says so: mend the class, and try it again.
///
/// The closure is called some hundred times, on any thread, and has to make a new operation each time, with its input set, and ready to
/// start, or soon so: what it depends on finishes, and its own `isReady` becomes true. Up to 50 operations exist at the same time, so none
/// may wait until another one is released. Its work should take milliseconds, so replace servers and files by something quick. To find
/// a `start()` or `cancel()` that waits for the work, let that take more than a tenth of a second. A
/// class whose work always ends before it can be cancelled is tried, but its cancellation is not.
///
/// For an `AsyncOperation` the library sees to most rules, and what can be wrong is the work: a path that forgets `finish`, a hook that
/// does not stop it, a reference that is kept. Other subclasses of `Operation` can break all of them. A class that damages Foundation's
/// queue ends the program on Linux; where that can be known beforehand, the operation is not put on one. One that finishes in its `deinit`
/// may end it too, because Foundation holds an operation until its completion block has been called. A class that blocks the thread which
/// asks it, for longer than the limit, is not tried any further, and the thread stays behind.
public enum OperationContract {
    /// Tries a class, and returns the rules that were seen to be broken, each once.
    ///
    /// Cancelling the task ends the trial: the call returns what was found so far.
    ///
    /// - Parameters:
    ///   - limit: How long an operation may take. One that takes longer never ends.
    ///   - rounds: How many operations are cancelled at random moments.
    ///   - seed: The beginning of the random numbers. It is in the ``Report``.
    ///   - make: Makes an operation.
    /// - Returns: The violations, in the order of ``Rule``.
    public static func violations(
        within limit: Duration = .seconds(2), rounds: Int = 200, seed: UInt64 = .random(in: 0 ... .max),
        _ make: @escaping @Sendable () throws -> Operation
    ) async -> [Violation] {
        await report(within: limit, rounds: rounds, seed: seed, make).violations
    }

    /// Tries a class, and returns what was tried, too.
    ///
    /// Cancelling the task ends the trial: the report has what was found so far.
    ///
    /// - Parameters:
    ///   - limit: How long an operation may take. One that takes longer never ends.
    ///   - rounds: How many operations are cancelled at random moments.
    ///   - seed: The beginning of the random numbers.
    ///   - make: Makes an operation.
    /// - Returns: The report.
    public static func report(
        within limit: Duration = .seconds(2), rounds: Int = 200, seed: UInt64 = .random(in: 0 ... .max),
        _ make: @escaping @Sendable () throws -> Operation
    ) async -> Report {
        let record = TrialRecord(limit: limit, seed: seed)
        return await withTaskCancellationHandler {
            // On threads of their own, because situations wait, and what they wait for may need every other thread.
            await withCheckedContinuation { continuation in
                Thread {
                    Trial(limit: limit, rounds: rounds, seed: seed, record, make).run()
                    record.end()
                }.start()
                Thread { continuation.resume(returning: record.reportAtEnd()) }.start()
            }
        } onCancel: {
            record.cancel()
        }
    }

    /// What a class has to do.
    public enum Rule: Int, Sendable, Hashable, CaseIterable, Comparable {
        /// The closure makes a new operation each time.
        case isNew
        /// It becomes ready once its dependencies have finished, also once it is cancelled, and a queue is told so.
        case becomesReady
        /// It finishes once it was started.
        case finishes
        /// It says that it executes as long as its work goes on. Work in `start()` of less than a millisecond is not seen.
        case executesWhileWorking
        /// `start()` and `cancel()` return before work has ended that goes on elsewhere. A tenth of a second is not taken for waiting.
        case doesNotBlock
        /// It says that it is asynchronous if it goes on after `start()`.
        case isAsynchronous
        /// It announces that it is finished.
        case announcesItsEnd
        /// It finishes once, and its completion block is called once. On Linux, Foundation ignores a second announcement of
        /// the end, so that only a second call of the block is found there.
        case finishesOnce
        /// It is never executing and finished at the same time, and stays finished.
        case movesForward
        /// It says that it was cancelled.
        case marksCancellation
        /// It finishes when it is started after a cancellation.
        case finishesWhenCancelledBefore
        /// It does not finish before it was started.
        case waitsForItsStart
        /// It does not work when it was cancelled before its start. It may execute until it has looked at `isCancelled`: for a millisecond,
        /// or a quarter of the time that its work takes.
        case doesNotWorkWhenCancelledBefore
        /// It finishes when it is cancelled while it works.
        case finishesWhenCancelled
        /// It finishes when it is cancelled at any moment.
        case survivesRaces
        /// Nothing keeps it before its start, or once it is finished, and its `deinit` returns.
        case isReleased
        /// It calls the library's methods as their documentation says. A `super.main()` is found in debug builds only. A success that a
        /// cancelled operation reports is found for typed operations only, whose output is missing then.
        case usesTheLibrary

        /// Whether a rule comes before another one in reports.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

        /// What to do about a violation.
        public var advice: String {
            switch self {
            case .isNew: "Create the operation inside the closure."
            case .becomesReady:
                "Let what it depends on finish, and its isReady become true, with change notifications, also once it is cancelled."
            case .finishes: "Finish on every path of the work."
            case .executesWhileWorking: "Let isExecuting be true from the start to the end, with change notifications."
            case .doesNotBlock: "Return from main() or start() and finish in the callback of the work."
            case .isAsynchronous: "Override isAsynchronous to return true."
            case .announcesItsEnd:
                "Call willChangeValue and didChangeValue for the key isFinished around the change, without a lock."
            case .finishesOnce:
                "Let the first end decide, announce it once, and leave the completion block to Foundation."
            case .movesForward: "Change isExecuting and isFinished in one step, under one lock."
            case .marksCancellation: "Call super.cancel() first in cancel()."
            case .finishesWhenCancelledBefore: "Finish in start() if isCancelled is true."
            case .waitsForItsStart: "Don't finish in cancel() before the start: finish in start()."
            case .doesNotWorkWhenCancelledBefore: "Look at isCancelled in start() before the work begins."
            case .finishesWhenCancelled: "Stop the work in cancel() or didCancel(), and finish."
            case .survivesRaces: "Finish at whatever moment the cancellation comes, and guard the state with one lock."
            case .isReleased:
                "Don't keep the operation in itself, nor in what its work leaves behind, such as a recorded callback."
            case .usesTheLibrary: "See the documentation of AsyncOperation for what subclasses may do."
            }
        }
    }

    /// A rule that a class breaks.
    public struct Violation: Sendable, Hashable, CustomStringConvertible {
        /// The rule.
        public let rule: Rule
        /// What has happened, as a sentence.
        public let sentence: String
        /// What to do about it, unless that is the advice of the rule.
        let advice: String?

        /// What has happened, and what to do about it.
        public var description: String {
            let advice = advice ?? rule.advice
            return advice.isEmpty ? sentence : "\(sentence) \(advice)"
        }
    }

    /// What was tried, and what was found.
    public struct Report: Sendable, CustomStringConvertible {
        /// The rules that were seen to be broken, each once.
        public let violations: [Violation]
        /// The situations that were tried, in order, and why others were left out.
        public let situations: [String]
        /// How many operations were made.
        public let operationCount: Int
        /// The beginning of the random numbers.
        public let seed: UInt64

        /// The violations and the situations, a line each.
        public var description: String {
            (violations.map { "- \($0)" } + ["\(operationCount) operations, seed \(seed):"]
                + situations.map { "  \($0)" })
                .joined(separator: "\n")
        }
    }
}
