import Foundation
import OperationKit

extension Trial {
    /// The longest time that `start()` may take of an operation that ends later, and `cancel()`.
    static let longestCall = Duration.milliseconds(100)

    func makesNewOperations() throws {
        var operations = [try makeOperation(), try makeOperation()]
        if operations[0] === operations[1] { found(.isNew, "The closure made the same operation twice.") }
        for operation in operations where operation.isExecuting || operation.isFinished || operation.isCancelled {
            found(.isNew, "The closure made an operation that was started or cancelled before.")
        }
        record.ask(.release) { operations = [] }
    }

    /// Tried several times: on a machine that is busy, an operation may have ended before anyone looks at it, or begin its work late.
    func startByHand() throws {
        var (hasExecuted, shortestIdleTime) = (false, Duration.seconds(Int64.max))
        for attempt in 0..<10 {
            let operation = try makeOperation()
            let ends = countEnds(of: operation)
            guard becomesReady(operation) else { return }
            let (starter, began) = (Starter(operation), ContinuousClock.now)
            var lastIdle = began
            let hasReturnedOrFinished = eventually {
                // In this order: an end in between is none.
                let now = ContinuousClock.now
                if operation.isExecuting { hasExecuted = true } else if !operation.isFinished { lastIdle = now }
                return starter.returned != nil || operation.isFinished
            }
            if !hasReturnedOrFinished {
                found(.doesNotBlock, "Its start() did not return within \(seconds).")
                return
            }
            if !waitForEnd(operation) {
                found(.finishes, "It did not finish within \(seconds) of its start.\(unfinished(operation))")
                return
            }
            workDuration = began.duration(to: .now)
            guard let returned = hasReturned(starter) else { return }
            lookAtOutcome(of: operation)
            (operation as? AsyncOperation).map { samples.append($0) }
            // Now, because Foundation's queue does not survive it.
            if attempt == 0, eventually(within: .milliseconds(20), { ends.value > 1 }) {
                found(.finishesOnce, "Its completion block was called \(ends.value) times.")
            }
            if returned.isFinished {
                shortestIdleTime = min(shortestIdleTime, returned.began.duration(to: lastIdle))
                continue
            }
            if !returned.isExecuting {
                // Not immediately: between the changes of the two, some say neither.
                if attempt < 3 { continue }
                found(.executesWhileWorking, "It was neither executing nor finished when start() had returned.")
            }
            if !operation.isAsynchronous {
                found(.isAsynchronous, "It goes on after start() has returned, and isAsynchronous is false.")
            }
            return
        }
        if !hasExecuted, shortestIdleTime > .microseconds(500) {
            found(.executesWhileWorking, "It was not executing while its start() worked.")
        }
    }

    /// Waits for `start()`, which may go on after the end.
    private func hasReturned(_ starter: Starter) -> Starter.Return? {
        _ = eventually { starter.returned != nil }
        let returned = starter.returned
        if returned == nil {
            found(.doesNotBlock, "It was finished, and its start() did not return within \(seconds).")
        }
        return returned
    }

    /// The shortest of several times counts, as the machine may be busy.
    func measureStart() throws {
        var shortest = Duration.seconds(Int64.max)
        for _ in 0..<8 {
            let operation = try makeOperation()
            guard operation.isAsynchronous, !isBlock(operation), becomesReady(operation) else { return }
            let (starter, began) = (Starter(operation), ContinuousClock.now)
            _ = eventually { starter.returned != nil || operation.isFinished }
            if !waitForEnd(operation) {
                return found(.finishes, "It did not finish within \(seconds) of its start.\(unfinished(operation))")
            }
            workDuration = began.duration(to: .now)
            guard let returned = hasReturned(starter) else { return }
            shortest = min(shortest, returned.duration)
            if shortest <= Self.longestCall { return }
        }
        found(.doesNotBlock, "It is asynchronous, and its start() took \(shortest).")
    }

    /// Whether its closure is its work, and may block.
    private func isBlock(_ operation: Operation) -> Bool {
        operation is ThrowingBlockOperation || "\(type(of: operation))".hasPrefix("IOBlockOperation<")
    }

    func lookAtOutcome(of operation: Operation) {
        guard let operation = operation as? AsyncOperation else { return }
        let errors: [any Error]
        switch operation.error {
        case nil: return
        case let error as CompoundOperationError: errors = [error] + error.leafErrors
        case let error?: errors = [error]
        }
        for error in errors
        where error is LostFinishError || error is IOOperationError || error is CompoundAdditionError {
            // The error says what to do. The default work of a typed operation ends without an output.
            let hasNoOutput = if case IOOperationError.missingOutput = error { true } else { false }
            found(
                .usesTheLibrary, error.localizedDescription,
                advice: hasNoOutput ? "Don't call super.main(input:), which ends it so." : "")
        }
    }

    /// Late, because work may call `finish` at any time after `super.main()`, and end again at any time after an end.
    func lookBack() {
        _ = eventually(within: .milliseconds(20)) { samples.contains(where: \.wasFinishedAfterDefaultMain) }
        if samples.contains(where: \.wasFinishedAfterDefaultMain) {
            found(
                .usesTheLibrary, "It called finish after super.main() had finished it.",
                advice: "Don't call super.main().")
        }
        for end in ends where end.count.value > 1 { found(.finishesOnce, end.sentence) }
    }

    func runOnQueue() throws {
        let operation = try makeOperation()
        let ends = countEnds(of: operation, "It ran on a queue")
        let following = BlockOperation {}
        following.addDependency(operation)
        // In this order: on Linux, Foundation never starts an operation whose dependency finishes while it is being added.
        queue.addOperation(following)
        enqueue(operation)
        if !waitForEnd(operation) {
            foundEndlessOnQueue(operation)
            cancel(operation, "It was cancelled on a queue")
        } else if !eventually({ following.isFinished }) {
            found(.announcesItsEnd, "It was finished, and an operation that depends on it did not start.")
        } else if !eventually({ ends.value > 0 }) {
            foundNoCompletion("It ran on a queue")
        }
    }

    func waitsForDependency() throws {
        let (operation, dependency) = (try makeOperation(), BlockOperation {})
        operation.addDependency(dependency)
        if saysItIsReady(operation) {
            found(
                .becomesReady, "It was ready, and depends on an operation that has not finished.",
                advice: "Let isReady be true only if super.isReady is.")
        }
        // Foundation may notify it of an end as long as it depends on something.
        operation.removeDependency(dependency)
    }

    func startsAfterDependency() throws {
        for isCancelled in [false, true] {
            let (operation, dependency) = (try makeOperation(), BlockOperation {})
            operation.addDependency(dependency)
            kept.append(operation)
            if isCancelled { dependency.cancel() }
            // In this order: on Linux, Foundation never starts an operation whose dependency finishes while it is being added.
            for operation in [operation, dependency] { enqueue(operation) }
            if waitForEnd(operation) { continue }
            foundEndlessOnQueue(operation, "What it depends on \(isCancelled ? "was cancelled and ended" : "finished")")
            cancel(operation, "It was cancelled on a queue")
            return
        }
    }

    /// A composite cancels its children then.
    func finishFromOutside() throws {
        guard let operation = try makeOperation() as? AsyncOperation else { return }
        _ = Starter(operation)
        guard eventually({ operation.isExecuting || operation.isFinished }) else { return }
        // What is inside a composite starts later, if there is anything.
        _ = eventually(within: .milliseconds(100)) { operation.isFinished || isAnyChildExecuting(of: operation) }
        let question = TrialRecord.Question(rule: .finishesWhenCancelled) {
            "It was finished by other code while it worked, and that did not return within \($0)."
        }
        _ = record.ask(question) { operation.finish(withError: CancellationError()) }
        if !waitForEnd(operation) {
            found(
                .finishesWhenCancelled,
                "It was finished by other code while it worked, and did not end within \(seconds).\(unfinished(operation))"
            )
        }
    }

    func cancelAfterEnd() throws {
        let operation = try makeOperation()
        countEnds(of: operation, "It was cancelled after its end")
        enqueue(operation)
        if !waitForEnd(operation) { return foundEndlessOnQueue(operation) }
        var wasFinished = true
        _ = eventually(within: .milliseconds(20)) {
            // Again and again: at the first one the thread that ends the operation may not have returned yet.
            cancel(operation, "It was cancelled after its end")
            lookForContradiction(operation, wasFinished: &wasFinished)
            return false
        }
    }

    func release(mayBeCancelledBefore: Bool) throws {
        weak var unstarted: Operation?
        try autoreleased { unstarted = try makeOperation() }
        if !eventually({ unstarted == nil }) {
            return found(.isReleased, "It was dropped before its start, and \(seconds) later it was still referenced.")
        }
        // What stops the work may keep it, too.
        var isComplete = true
        for end in End.allCases {
            let isSpoiled =
                switch end {
                case .byItself: false
                case .cancelledBefore: !mayBeCancelledBefore
                case .cancelledWhileWorking: cancelledOnesHaveNoEnd
                }
            if isSpoiled {
                isComplete = false
            } else if try !isReleased(after: end) {
                return
            }
        }
        if isComplete { return }
        record.began("not tried: releasing it after a cancellation, because of what was found before")
    }

    /// How an operation that is to be released comes to its end.
    private enum End: CaseIterable {
        case byItself, cancelledBefore, cancelledWhileWorking

        var situation: String {
            switch self {
            case .byItself: "It was started"
            case .cancelledBefore: "It was cancelled before its start"
            case .cancelledWhileWorking: "It was cancelled while it worked"
            }
        }
    }

    private func isReleased(after end: End) throws -> Bool {
        weak var released: Operation?
        let hasEnded = try autoreleased {
            let operation = try makeOperation()
            released = operation
            let ends = countEnds(of: operation)
            if end == .cancelledBefore { cancel(operation, end.situation) }
            enqueue(operation)
            if end == .cancelledWhileWorking {
                _ = eventually { operation.isExecuting || operation.isFinished }
                cancel(operation, end.situation)
            }
            if waitForEnd(operation) { return lookForAnnouncement(of: operation, ends, end.situation) }
            switch end {
            case .cancelledBefore: foundEndlessWhenCancelledBefore(onQueue: operation)
            case .cancelledWhileWorking where operation.isExecuting: foundEndlessWhenCancelled(operation)
            case .byItself, .cancelledWhileWorking: foundEndlessOnQueue(operation)
            }
            return false
        }
        if !hasEnded || eventually({ released == nil }) { return true }
        let sentence = end == .byItself ? "It was finished" : "\(end.situation), and finished"
        found(.isReleased, "\(sentence), and \(seconds) later it was still referenced.")
        return false
    }
}
