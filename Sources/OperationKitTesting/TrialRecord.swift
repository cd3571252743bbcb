import Foundation
import OperationKit

/// What a trial has found so far, and what its thread asks of the class at the moment.
///
/// A class may block the thread that asks it, for good. So another thread watches that of the trial, and leaves it behind then: what was found
/// so far is the report, with the question that was not answered.
final class TrialRecord: @unchecked Sendable {
    /// What a thread asks of a class, and the rule that is broken if it does not go on.
    struct Question: Sendable {
        let rule: OperationContract.Rule
        var advice: String?
        let sentence: @Sendable (_ seconds: String) -> String

        /// What is asked most of the time.
        static let state = Question(rule: .announcesItsEnd) {
            "It was asked whether it is executing, finished or cancelled, and did not answer within \($0)."
        }

        /// What is asked as the last reference is dropped.
        static let release = Question(rule: .isReleased, advice: "Don't wait in deinit.") {
            "It was released, and its deinit did not return within \($0)."
        }
    }

    private let limit: Duration
    private let seed: UInt64
    private let condition = NSCondition()
    private var violations: [OperationContract.Rule: OperationContract.Violation] = [:]
    private var situations: [String] = []
    private var spoilingCount = 0
    private var operationCount = 0
    private var question: Question?
    /// The last operation that was made.
    private weak var latest: Operation?
    /// How often the thread was seen to go on.
    private var pulseCount = 0
    private var isOver = false

    init(limit: Duration, seed: UInt64) {
        self.limit = limit
        self.seed = seed
    }

    // MARK: - The thread of the trial

    /// Whether the trial has ended, or its thread was left behind. Nothing counts any more then.
    var hasEnded: Bool { condition.withLock { isOver } }

    /// How often a rule was seen to be broken that may keep an operation from ending, or damage its queue.
    var spoilingViolationCount: Int { condition.withLock { spoilingCount } }

    private static let harmless = Set<OperationContract.Rule>(
        [.executesWhileWorking, .isAsynchronous, .usesTheLibrary])

    func hasFound(_ rule: OperationContract.Rule) -> Bool { condition.withLock { violations[rule] != nil } }

    func found(_ rule: OperationContract.Rule, _ sentence: String, advice: String? = nil) {
        condition.withLock {
            if !Self.harmless.contains(rule) { spoilingCount += 1 }
            guard !isOver, violations[rule] == nil else { return }
            violations[rule] = .init(rule: rule, sentence: sentence, advice: advice)
        }
    }

    func began(_ situation: String) {
        condition.withLock { if !isOver { situations.append(situation) } }
    }

    func makesOperation() {
        condition.withLock { if !isOver { operationCount += 1 } }
    }

    func made(_ operation: Operation) {
        condition.withLock { latest = operation }
    }

    /// The thread goes on.
    func pulse() { condition.withLock { pulseCount += 1 } }

    /// Asks something of the class that may block the thread.
    func ask<Answer>(_ question: Question, _ body: () throws -> Answer) rethrows -> Answer {
        change(to: question)
        defer { change(to: nil) }
        return try body()
    }

    private func change(to question: Question?) {
        condition.withLock {
            self.question = question
            pulseCount += 1
        }
    }

    /// The trial is over.
    func end() {
        condition.withLock {
            isOver = true
            condition.broadcast()
        }
    }

    /// The task that waits for the report is cancelled. Takes no other lock, and calls nothing: the runtime holds a lock of the task.
    func cancel() {
        condition.withLock {
            if isOver { return }
            isOver = true
            situations.append("not tried: what is left, because the task was cancelled")
            condition.broadcast()
        }
    }

    // MARK: - The thread that watches

    /// Waits until the trial is over, or its thread is blocked.
    ///
    /// - Returns: The report.
    func reportAtEnd() -> OperationContract.Report {
        // The thread may wait for a second without a sign. Patience is twenty times as long then.
        let limit = max(limit, .milliseconds(100))
        while let seen = pulseWithoutAnother(for: limit / 8) {
            _ = Patience.wait(limit) { condition.withLock { isOver || pulseCount != seen } }
            leaveBehind(seen)
        }
        return condition.withLock {
            OperationContract.Report(
                violations: violations.values.sorted { $0.rule < $1.rule }, situations: situations,
                operationCount: operationCount, seed: seed)
        }
    }

    /// Waits until there was no sign of the thread for some time.
    ///
    /// - Returns: The number of its last sign, or `nil` if the trial is over.
    private func pulseWithoutAnother(for duration: Duration) -> Int? {
        condition.withLock {
            var seen: Int?
            while !isOver, seen != pulseCount {
                seen = pulseCount
                let deadline = duration.fromNow
                while !isOver, condition.wait(until: deadline) {}
            }
            return isOver ? nil : seen
        }
    }

    private func leaveBehind(_ seen: Int) {
        let limit = "\(limit)"
        // Here it may be dropped: not with the lock held.
        let operation = condition.withLock { latest }
        condition.withLock {
            guard !isOver, pulseCount == seen else { return }
            isOver = true
            situations.append("not tried: what is left, because the class blocks the thread that asks it")
            let question = question ?? (operation == nil ? .release : .state)
            guard violations[question.rule] == nil else { return }
            violations[question.rule] = .init(
                rule: question.rule, sentence: question.sentence(limit), advice: question.advice)
        }
    }
}
