import Foundation
import OperationKit

/// Puts operations of a class through all situations, on one thread, which waits, and which the class may block.
final class Trial {
    let limit: Duration
    let rounds: Int
    let seed: UInt64
    let record: TrialRecord
    private let make: @Sendable () throws -> Operation
    let queue = OperationQueue()
    /// Operations whose work alone has ended them.
    var samples: [AsyncOperation] = []
    /// How long an operation took from its start to its end: the last one that was looked at, because the first one may have loaded
    /// something.
    var workDuration = Duration.zero
    /// Operations that are kept until the end of the trial: work that was cancelled may go on and end them again, and Foundation on
    /// Linux tells of the end of a dependency those that did not wait for it.
    var kept: [Operation] = []
    /// How often operations have ended, and what to say of those that have ended twice.
    var ends: [(count: Counter, sentence: String)] = []

    init(
        limit: Duration, rounds: Int, seed: UInt64, _ record: TrialRecord,
        _ make: @escaping @Sendable () throws -> Operation
    ) {
        self.limit = limit
        self.rounds = rounds
        self.seed = seed
        self.record = record
        self.make = make
        queue.maxConcurrentOperationCount = 16
    }

    func run() {
        guard perform("two operations are made", makesNewOperations), perform("it is started by hand", startByHand),
            perform("it runs on a queue, and another operation depends on it", runOnQueue)
        else {
            record.began("not tried: what is left, because of what was found before")
            return
        }
        perform("it depends on an operation that has not finished", waitsForDependency)
        perform("what it depends on ends, also as cancelled", startsAfterDependency)
        let mayBeQueued = perform("it is cancelled before its start", cancelBeforeStart)
        perform("its start() is measured", measureStart)
        perform("it is cancelled while it works", cancelWhileWorking)
        if previousIsOurs {
            perform("it is cancelled at the moment at which its work begins", cancelAsWorkBegins)
            perform("it is finished from outside while it works", finishFromOutside)
        }
        perform("it is cancelled after its end", cancelAfterEnd)
        perform("everything else releases it") { try release(mayBeCancelledBefore: mayBeQueued) }
        if mayBeQueued, !cancelledOnesHaveNoEnd {
            perform("\(rounds) of them are cancelled at random moments", races)
        } else {
            record.began("not tried: cancellations at random moments, because of what was found before")
        }
        lookBack()
    }

    /// Tries a situation.
    ///
    /// - Returns: Whether no rule was broken in it that spoils other situations.
    @discardableResult
    private func perform(_ situation: String, _ body: () throws -> Void) -> Bool {
        let count = record.spoilingViolationCount
        record.began(situation)
        do {
            try body()
        } catch {
            // The error says what is wrong.
            found(.isNew, "The closure threw an error: \(error.eventText)".asSentence, advice: "")
        }
        return record.spoilingViolationCount == count
    }

    func found(_ rule: OperationContract.Rule, _ sentence: String, advice: String? = nil) {
        record.found(rule, sentence, advice: advice)
    }

    // MARK: - Operations

    private(set) var previousIsOurs = false

    func makeOperation() throws -> Operation {
        // A thread that was left behind and goes on has nothing to do any more.
        if record.hasEnded { throw CancellationError() }
        record.makesOperation()
        let question = TrialRecord.Question(rule: .isNew) { "The closure did not return within \($0)." }
        let operation = try record.ask(question, make)
        previousIsOurs = operation is AsyncOperation
        // Situations drop some unstarted.
        operation.holdUntilDependenciesEnd()
        record.made(operation)
        return operation
    }

    func autoreleased<Value>(_ body: () throws -> Value) rethrows -> Value {
        #if canImport(ObjectiveC)
        return try autoreleasepool { try body() }
        #else
        return try body()
        #endif
    }

    /// Counts the ends of an operation until all is over; what was done with it is said of it if it has ended twice.
    @discardableResult
    func countEnds(of operation: Operation, _ situation: String) -> Counter {
        let count = countEnds(of: operation)
        ends.append((count, "\(situation), and its completion block was called twice."))
        return count
    }

    /// Counts the ends of an operation, after its own completion block, which may give back what another operation needs.
    func countEnds(of operation: Operation) -> Counter {
        let (count, own) = (Counter(), operation.completionBlock)
        operation.completionBlock = {
            own?()
            count.increment()
        }
        return count
    }

    /// Waits for the completion block of an operation that has finished, which Foundation calls once it is told.
    ///
    /// - Returns: Whether it is told. If not, that is found of what was done with the operation.
    @discardableResult
    func lookForAnnouncement(of operation: Operation, _ ends: Counter, _ situation: String) -> Bool {
        // The library tells it. A class may have dropped the block.
        let isTold = operation is AsyncOperation
        if isTold && record.hasFound(.finishesOnce) || eventually({ ends.value > 0 }) { return true }
        if isTold {
            foundNoCompletion(situation)
        } else {
            found(.announcesItsEnd, "\(situation), and finished without announcing it.")
        }
        return isTold
    }

    func foundNoCompletion(_ situation: String) {
        found(
            .finishesOnce, "\(situation), and finished, and its completion block was not called.",
            advice: "Leave the completion block to Foundation.")
    }

    /// Whether a queue may wait for operations that were cancelled.
    var cancelledOnesHaveNoEnd: Bool {
        record.hasFound(.finishesWhenCancelled) || record.hasFound(.announcesItsEnd)
    }

    func eventually(within limit: Duration? = nil, _ condition: () -> Bool) -> Bool {
        Patience.wait(limit ?? self.limit, isOver: { record.hasEnded }) {
            record.pulse()
            return condition()
        }
    }

    /// What an operation says of itself at one moment, if that can't be.
    func lookForContradiction(_ operation: Operation, wasFinished: inout Bool) {
        // In this order: an end in between is none.
        let isFinished = operation.isFinished
        if isFinished, operation.isExecuting {
            found(.movesForward, "It was executing and finished at the same time.")
        }
        if wasFinished, !isFinished { found(.movesForward, "It was finished, and then it was not.") }
        wasFinished = isFinished
    }

    /// Waits for the end of an operation that was started.
    func waitForEnd(_ operation: Operation, within limit: Duration? = nil) -> Bool {
        var wasFinished = false
        return eventually(within: limit) {
            lookForContradiction(operation, wasFinished: &wasFinished)
            return wasFinished
        }
    }

    /// Waits until an operation may be started by hand: Foundation ends the program if it is not ready. One of the library always may.
    func becomesReady(_ operation: Operation) -> Bool {
        if operation is AsyncOperation { return true }
        if eventually({ saysItIsReady(operation) }) { return true }
        found(.becomesReady, "It was not ready within \(seconds): \(obstacle(to: operation)).")
        return false
    }

    /// Whether an operation that may block says that it is ready.
    func saysItIsReady(_ operation: Operation) -> Bool {
        let question = TrialRecord.Question(rule: .becomesReady) {
            "It was asked whether it is ready, and did not answer within \($0)."
        }
        return record.ask(question) { operation.isReady }
    }

    /// Says of an operation what was done with it, and that its queue has not started it.
    func foundNotStarted(_ operation: Operation, _ situation: String) {
        found(.becomesReady, "\(situation), and was not started within \(seconds): \(obstacle(to: operation)).")
    }

    /// Says of an operation that was added to a queue that it has not finished, or that the queue has not started it.
    func foundEndlessOnQueue(_ operation: Operation, _ situation: String = "It was added to a queue") {
        if operation.isExecuting || operation.isFinished {
            found(.finishes, "It did not finish within \(seconds) of its start on a queue.")
        } else {
            foundNotStarted(operation, situation)
        }
    }

    func foundEndlessWhenCancelled(_ operation: Operation) {
        found(
            .finishesWhenCancelled,
            "It was cancelled while it worked, and did not finish within \(seconds).\(unfinished(operation))")
    }

    /// Says that an operation which was cancelled before its start did not finish.
    func foundEndlessWhenCancelledBefore() {
        found(
            .finishesWhenCancelledBefore,
            "It was cancelled before its start, and did not finish within \(seconds) of its start.")
    }

    /// Says of an operation which was cancelled and added to a queue that it did not finish, or that the queue has not started it.
    func foundEndlessWhenCancelledBefore(onQueue operation: Operation) {
        if operation.isReady { return foundEndlessWhenCancelledBefore() }
        foundNotStarted(operation, "It was cancelled, added to a queue")
    }

    /// What keeps an operation from being started.
    private func obstacle(to operation: Operation) -> String {
        if operation.isReady { return "its isReady became true, and the queue was not told" }
        let dependency = operation.dependencies.first { !$0.isFinished }
        return dependency.map { "it depends on “\($0.displayName)”, which has not finished" } ?? "its isReady is false"
    }

    /// Cancels an operation; what was done with it is said of it if its `cancel()` blocks.
    ///
    /// - Returns: How long `cancel()` took.
    @discardableResult
    func cancel(_ operation: Operation, _ situation: String) -> Duration {
        let question = TrialRecord.Question(rule: .finishesWhenCancelled) {
            "\(situation), and its cancel() did not return within \($0), as if it waited for the work or for a lock."
        }
        let began = ContinuousClock.now
        record.ask(question, operation.cancel)
        return began.duration(to: .now)
    }

    /// Adds an operation to the queue, which asks it for its state.
    func enqueue(_ operation: Operation) {
        let question = TrialRecord.Question(rule: .announcesItsEnd) {
            "It was added to a queue, and did not answer within \($0) what that asked it."
        }
        record.ask(question) { queue.addOperation(operation) }
    }

    /// The tree of a composite that hangs.
    func unfinished(_ operation: Operation) -> String {
        guard operation is AsyncOperation else { return "" }
        let lines = operation.debugDescription.split(separator: "\n")
        return lines.count > 1 ? "\n" + lines.map { "  \($0)" }.joined(separator: "\n") + "\n" : ""
    }

    var seconds: String { "\(limit)" }
}
