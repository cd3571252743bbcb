import Foundation
import OperationKit

extension Trial {
    func cancelBeforeStart() throws {
        // Some execute until they have looked at isCancelled.
        let longestLook = max(.milliseconds(1), workDuration / 4)
        for isOnQueue in [true, false] {
            // On a busy machine, a life takes longer than it would, and it may be seen too late that it executes.
            var (shortestLife, longestExecution) = (Duration.seconds(Int64.max), Duration.zero)
            for _ in 0..<8 where shortestLife > longestLook {
                guard let (life, execution) = try lifeWhenCancelledBefore(onQueue: isOnQueue) else { return }
                shortestLife = min(shortestLife, life)
                longestExecution = max(longestExecution, execution)
            }
            if min(shortestLife, longestExecution) <= longestLook { continue }
            return found(
                .doesNotWorkWhenCancelledBefore,
                "It was cancelled before its start, and executed for \(longestExecution) nevertheless.")
        }
    }

    /// Cancels and starts an operation.
    ///
    /// - Returns: How long it took from the start to the end, and how long it was seen to execute; `nil` if it breaks another rule.
    private func lifeWhenCancelledBefore(onQueue isOnQueue: Bool) throws -> (life: Duration, execution: Duration)? {
        let (operation, situation) = (try makeOperation(), "It was cancelled before its start")
        let ends = countEnds(of: operation, situation)
        cancel(operation, situation)
        if !operation.isCancelled {
            found(.marksCancellation, "It was cancelled, and its isCancelled is false.")
            return nil
        }
        if eventually(within: .milliseconds(20), { operation.isFinished }) {
            found(.waitsForItsStart, "\(situation), and was finished before it was started.")
            return nil
        }
        guard isOnQueue || becomesReady(operation) else { return nil }
        let (watch, start) = (Watch(operation, record), ContinuousClock.now)
        if isOnQueue { enqueue(operation) } else { _ = Starter(operation) }
        let hasEnded = waitForEnd(operation)
        let duration = (start.duration(to: .now), watch.end())
        switch (hasEnded, isOnQueue) {
        case (true, true): return duration
        // Foundation's queue on Linux finds an end by itself.
        case (true, false): return lookForAnnouncement(of: operation, ends, situation) ? duration : nil
        case (false, true): foundEndlessWhenCancelledBefore(onQueue: operation)
        case (false, false): foundEndlessWhenCancelledBefore()
        }
        return nil
    }

    /// Whether something inside a composite executes. `true` for any other operation.
    func isAnyChildExecuting(of operation: Operation) -> Bool {
        let unfinished = (operation as? AsyncOperation)?.unfinishedChildren(atMost: 16)
        return unfinished?.children.contains { $0.operation.isExecuting } ?? true
    }

    func cancelWhileWorking() throws {
        let situation = "It was cancelled while it worked"
        var (tried, unmarked) = (0, 0)
        for attempt in 0..<20 where tried < 5 {
            let operation = try makeOperation()
            let ends = countEnds(of: operation, situation)
            guard becomesReady(operation) else { return }
            // On a busy machine the work may be over before this thread goes on.
            if operation.isAsynchronous, attempt.isMultiple(of: 2) {
                start(operation)
            } else {
                _ = Starter(operation)
            }
            guard eventually({ operation.isExecuting || operation.isFinished }), !operation.isFinished else { continue }
            // Its work may be at any place, and what is inside a composite starts later.
            let delay = max(min(.milliseconds(attempt), workDuration), min(workDuration, limit) * tried / 5)
            Thread.sleep(forTimeInterval: delay / .seconds(1))
            if !attempt.isMultiple(of: 2) {
                _ = eventually { operation.isFinished || isAnyChildExecuting(of: operation) }
            }
            if operation.isFinished { continue }
            tried += 1
            let duration = cancel(operation, situation)
            // A cancellation that comes while the operation is finishing takes no effect. Not each of them comes then.
            let isHeard = eventually(within: .milliseconds(100)) {
                operation.isCancelled || operation.isFinished || ends.value > 0
            }
            if !operation.isCancelled, !previousIsOurs { unmarked += 1 }
            if !isHeard || unmarked == 5 { found(.marksCancellation, "\(situation), and its isCancelled is false.") }
            if !waitForEnd(operation) {
                if hasGoneBack(operation, ends) { return }
                return foundEndlessWhenCancelled(operation)
            }
            if !lookForAnnouncement(of: operation, ends, situation) { return }
            lookAtOutcome(of: operation)
            kept.append(operation)
            if duration > Self.longestCall { try measureCancel(after: delay) }
        }
        if tried == 0 { record.began("not tried: cancelling it while it works, because it always ended before") }
    }

    /// Cancels others at the same moment of their work. The shortest of several times counts, as the machine may be busy.
    private func measureCancel(after delay: Duration) throws {
        let situation = "It was cancelled while it worked"
        var shortest = Duration.seconds(Int64.max)
        for _ in 0..<4 {
            if record.hasFound(.doesNotBlock) { return }
            let operation = try makeOperation()
            guard becomesReady(operation) else { return }
            _ = Starter(operation)
            _ = eventually { operation.isExecuting || operation.isFinished }
            Thread.sleep(forTimeInterval: delay / .seconds(1))
            shortest = min(shortest, cancel(operation, situation))
            if !waitForEnd(operation) { return foundEndlessWhenCancelled(operation) }
            if shortest <= Self.longestCall { return }
        }
        found(
            .doesNotBlock, "\(situation), and its cancel() took \(shortest).",
            advice: "Finish in the callback of the work, and don't wait for that in cancel() or didCancel().")
    }

    private func start(_ operation: Operation) {
        record.ask(.init(rule: .doesNotBlock) { "Its start() did not return within \($0)." }, operation.start)
    }

    /// Of what has ended, and is not finished. A cancellation may come after the end, of which the class then forgets.
    private func hasGoneBack(_ operation: Operation, _ ends: Counter) -> Bool {
        guard eventually(within: .milliseconds(20), { ends.value > 0 }), !operation.isFinished else { return false }
        found(.movesForward, "It was finished, and then it was not.")
        return true
    }

    /// What the work has not set up yet can't be stopped then.
    func cancelAsWorkBegins() throws {
        guard let operation = try makeOperation() as? AsyncOperation else { return }
        let id = operation.observationID
        operation.addObserver(
            EventRecorder { operation, event in
                if event.operation == id, case .running = event.kind { operation.cancel() }
            })
        _ = Starter(operation)
        if !waitForEnd(operation) {
            found(
                .finishesWhenCancelled,
                "It was cancelled as its work began, and did not finish within \(seconds).\(unfinished(operation))")
        }
        lookAtOutcome(of: operation)
    }

    func races() throws {
        let situation = "It was cancelled at a random moment"
        var random = Random(seed: seed)
        for first in stride(from: 0, to: rounds, by: 32) {
            let racers = try (first..<min(first + 32, rounds)).map { _ in
                let operation = try makeOperation()
                return (operation: operation, ends: countEnds(of: operation, situation))
            }
            for (operation, _) in racers {
                let delay = delayOfRace(&random)
                let cancelSoon: @Sendable () -> Void = {
                    Thread {
                        if delay > .zero { Thread.sleep(forTimeInterval: delay / .seconds(1)) }
                        operation.cancel()
                    }.start()
                }
                switch random.next() % 4 {
                case 0:
                    cancelSoon()
                    enqueue(operation)
                case 1:
                    enqueue(operation)
                    cancelSoon()
                default:
                    guard becomesReady(operation) else { return }
                    // A busy machine starts what is on a queue long after all cancellations.
                    _ = Starter(operation, prepare: cancelSoon)
                }
            }
            // The last cancellation may come when the work was about to be over.
            let endless = racers.first { !waitForEnd($0.operation, within: limit + min(workDuration, limit)) }
            if let endless, hasGoneBack(endless.operation, endless.ends) { return }
            // First: a queue waits for the announcement before it starts others.
            for racer in racers where racer.operation.isFinished {
                if !lookForAnnouncement(of: racer.operation, racer.ends, situation) { return }
            }
            if let endless {
                let tree = unfinished(endless.operation)
                return found(.survivesRaces, "\(situation), and did not finish within \(seconds).\(tree)")
            }
        }
    }

    /// Half of the cancellations come soon, mostly very soon, because a busy machine starts operations late, and half of them at any moment
    /// of the work.
    private func delayOfRace(_ random: inout Random) -> Duration {
        let (soon, share) = ((random.next() % 300) << (random.next() % 5), random.next() % 2_000)
        return share < 1_000 ? .microseconds(soon) : min(workDuration, limit) * Int(share - 1_000) / 1_000
    }
}
