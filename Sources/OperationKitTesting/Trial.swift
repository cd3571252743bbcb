import Foundation
import OperationKit

/// Puts operations of a class through all situations, on one thread, which waits.
final class Trial {
    private let limit: Duration
    private let rounds: Int
    private let seed: UInt64
    private let make: @Sendable () throws -> Operation
    private var violations: [OperationContract.Rule: OperationContract.Violation] = [:]
    private var situations: [String] = []
    private var operationCount = 0
    private let queue = OperationQueue()
    /// The longest time that `start()` may take of an operation that ends later.
    private static let longestStart = Duration.milliseconds(100)

    init(limit: Duration, rounds: Int, seed: UInt64, _ make: @escaping @Sendable () throws -> Operation) {
        self.limit = limit
        self.rounds = rounds
        self.seed = seed
        self.make = make
        queue.maxConcurrentOperationCount = 16
    }

    var report: OperationContract.Report {
        OperationContract.Report(
            violations: violations.values.sorted { $0.rule < $1.rule }, situations: situations,
            operationCount: operationCount, seed: seed)
    }

    func run() {
        let reports = MisuseWatch()
        defer {
            for sentence in reports.end() { found(.usesTheLibrary, sentence) }
        }
        guard perform("two operations are made", makesNewOperations) else { return }
        guard perform("it is started by hand", startByHand) else { return }
        guard perform("it runs on a queue, and another operation depends on it", runOnQueue) else { return }
        let mayBeQueued = perform("it is cancelled before its start", cancelBeforeStart)
        perform("its start() is measured", measureStart)
        perform("it is cancelled while it works", cancelWhileWorking)
        if previousIsOurs {
            perform("it is finished from outside while it works", finishFromOutside)
            perform("it is started twice", startTwice)
        }
        perform("it is cancelled after its end", cancelAfterEnd)
        perform("everything else releases it", release)
        if mayBeQueued, violations[.finishesWhenCancelled] == nil {
            perform("\(rounds) of them are cancelled at random moments", races)
        } else {
            situations.append("not tried: cancellations at random moments, because of what was found before")
        }
    }

    /// Tries a situation.
    ///
    /// - Returns: Whether no rule was broken in it.
    @discardableResult
    private func perform(_ situation: String, _ body: () throws -> Void) -> Bool {
        let count = violations.count
        situations.append(situation)
        do {
            try body()
        } catch {
            found(.isNew, "The closure threw an error: \(error.localizedDescription).")
        }
        return violations.count == count
    }

    private func found(_ rule: OperationContract.Rule, _ sentence: String) {
        if violations[rule] == nil { violations[rule] = .init(rule: rule, sentence: sentence) }
    }

    // MARK: - Operations

    private var previousIsOurs = false

    private func makeOperation() throws -> Operation {
        operationCount += 1
        let operation = try make()
        previousIsOurs = operation is AsyncOperation
        return operation
    }

    /// Waits until something holds. On a machine that is busy it waits longer: a thread, a queue and an operation have to be started in a
    /// small part of the time, or else the time is not over.
    private func eventually(within limit: Duration? = nil, _ condition: () -> Bool) -> Bool {
        let limit = limit ?? self.limit
        var deadline = ContinuousClock.now + limit
        for _ in 0..<10 {
            while ContinuousClock.now < deadline {
                if condition() { return true }
                Thread.sleep(forTimeInterval: 0.000_2)
            }
            let delay = Latency.measure()
            if delay * 10 < limit { break }
            deadline = ContinuousClock.now + delay * 10
        }
        return condition()
    }

    /// What an operation says of itself at one moment, if that can't be.
    private func lookForContradiction(_ operation: Operation, wasFinished: inout Bool) {
        // In this order: an end in between is none.
        let isFinished = operation.isFinished
        if isFinished, operation.isExecuting {
            found(.movesForward, "It was executing and finished at the same time.")
        }
        if wasFinished, !isFinished { found(.movesForward, "It was finished, and then it was not.") }
        wasFinished = isFinished
    }

    /// Waits for the end of an operation that was started.
    private func waitForEnd(_ operation: Operation) -> Bool {
        var wasFinished = false
        return eventually {
            lookForContradiction(operation, wasFinished: &wasFinished)
            return wasFinished
        }
    }

    private var seconds: String { "\(limit)" }

    // MARK: - Situations

    private func makesNewOperations() throws {
        let (first, second) = (try makeOperation(), try makeOperation())
        if first === second { found(.isNew, "The closure made the same operation twice.") }
        for operation in [first, second] where operation.isExecuting || operation.isFinished || operation.isCancelled {
            found(.isNew, "The closure made an operation that was started or cancelled before.")
        }
    }

    private func startByHand() throws {
        let operation = try makeOperation()
        let returned = Signal()
        Starter(operation, returned).start()
        let hasReturned = eventually { returned.isSet || operation.isFinished }
        if !hasReturned {
            found(.doesNotBlock, "Its start() did not return within \(seconds).")
            return
        }
        let goesOn = returned.isSet && !operation.isFinished
        if goesOn, !operation.isExecuting, !operation.isFinished {
            found(.executesWhileWorking, "It was neither executing nor finished when start() had returned.")
        }
        if goesOn, !operation.isAsynchronous {
            found(.isAsynchronous, "It goes on after start() has returned, and isAsynchronous is false.")
        }
        if !waitForEnd(operation) {
            found(.finishes, "It did not finish within \(seconds) of its start.")
        }
        lookAtOutcome(of: operation)
    }

    /// The shortest of several times counts, as the machine may be busy.
    private func measureStart() throws {
        var shortest = Duration.seconds(Int64.max)
        for _ in 0..<3 {
            let operation = try makeOperation()
            guard operation.isAsynchronous else { return }
            let returned = Signal()
            let began = ContinuousClock.now
            Starter(operation, returned).start()
            _ = eventually { returned.isSet }
            shortest = min(shortest, began.duration(to: returned.time ?? .now))
            _ = waitForEnd(operation)
        }
        if shortest > Self.longestStart {
            found(.doesNotBlock, "It is asynchronous, and its start() took \(shortest).")
        }
    }

    private func lookAtOutcome(of operation: Operation) {
        guard let operation = operation as? AsyncOperation, let error = operation.error else { return }
        switch error {
        case is LostFinishError, is IOOperationError:
            found(.usesTheLibrary, error.localizedDescription)
        default: break
        }
    }

    private func runOnQueue() throws {
        let operation = try makeOperation()
        let (ends, dependent) = (Counter(), Signal())
        operation.completionBlock = { ends.increment() }
        let following = BlockOperation { dependent.set() }
        following.addDependency(operation)
        queue.addOperation(operation)
        queue.addOperation(following)
        if !waitForEnd(operation) {
            found(.finishes, "It did not finish within \(seconds) of its start on a queue.")
            operation.cancel()
        } else if !eventually({ dependent.isSet }) {
            found(.announcesItsEnd, "It was finished, and an operation that depends on it did not start.")
        }
        _ = eventually(within: .milliseconds(20)) { ends.value > 1 }
        if ends.value > 1 { found(.finishesOnce, "Its completion block was called \(ends.value) times.") }
    }

    private func cancelBeforeStart() throws {
        let operation = try makeOperation()
        operation.cancel()
        if !operation.isCancelled {
            found(.marksCancellation, "It was cancelled, and its isCancelled is false.")
            return
        }
        if operation.isFinished {
            found(.waitsForItsStart, "It was cancelled before its start, and was finished before it was started.")
            return
        }
        let watch = Watch(operation)
        queue.addOperation(operation)
        if !waitForEnd(operation) {
            found(
                .finishesWhenCancelledBefore,
                "It was cancelled before its start, and did not finish within \(seconds) of its start.")
        }
        if watch.end() {
            found(.doesNotWorkWhenCancelledBefore, "It was cancelled before its start, and executed nevertheless.")
        }
    }

    private func cancelWhileWorking() throws {
        var tried = 0
        for _ in 0..<5 {
            let operation = try makeOperation()
            Starter(operation, Signal()).start()
            guard eventually({ operation.isExecuting || operation.isFinished }), !operation.isFinished else { continue }
            tried += 1
            operation.cancel()
            if !operation.isCancelled, !operation.isFinished {
                found(.marksCancellation, "It was cancelled while it worked, and its isCancelled is false.")
            }
            if !waitForEnd(operation) {
                found(.finishesWhenCancelled, "It was cancelled while it worked, and did not finish within \(seconds).")
                return
            }
        }
        if tried == 0 { situations.append("not tried: cancelling it while it works, because it always ended before") }
    }

    private func finishFromOutside() throws {
        guard let operation = try makeOperation() as? AsyncOperation else { return }
        Starter(operation, Signal()).start()
        guard eventually({ operation.isExecuting || operation.isFinished }) else { return }
        operation.finish(withError: CancellationError())
        if !waitForEnd(operation) {
            found(.finishes, "It was finished by other code while it worked, and did not end within \(seconds).")
        }
    }

    private func startTwice() throws {
        let operation = try makeOperation()
        let ends = Counter()
        operation.completionBlock = { ends.increment() }
        for _ in 0..<2 { Starter(operation, Signal()).start() }
        if !waitForEnd(operation) { found(.finishes, "It was started twice, and did not finish within \(seconds).") }
        _ = eventually(within: .milliseconds(20)) { ends.value > 1 }
        if ends.value > 1 { found(.finishesOnce, "It was started twice, and ended twice.") }
    }

    private func cancelAfterEnd() throws {
        let operation = try makeOperation()
        let ends = Counter()
        operation.completionBlock = { ends.increment() }
        queue.addOperation(operation)
        guard waitForEnd(operation) else { return }
        operation.cancel()
        var wasFinished = true
        _ = eventually(within: .milliseconds(20)) {
            lookForContradiction(operation, wasFinished: &wasFinished)
            return false
        }
        if ends.value > 1 { found(.finishesOnce, "It was cancelled after its end, and ended again.") }
    }

    private func release() throws {
        weak var released: Operation?
        try autoreleased {
            let operation = try makeOperation()
            released = operation
            queue.addOperation(operation)
            _ = waitForEnd(operation)
        }
        if !eventually({ released == nil }) {
            found(.isReleased, "It was finished, and \(seconds) later it was still referenced.")
        }
    }

    private func autoreleased(_ body: () throws -> Void) rethrows {
        #if canImport(ObjectiveC)
        try autoreleasepool { try body() }
        #else
        try body()
        #endif
    }

    private func races() throws {
        var random = Random(seed: seed)
        for first in stride(from: 0, to: rounds, by: 32) {
            let ends = Counter()
            let operations = try (first..<min(first + 32, rounds)).map { _ in
                let operation = try makeOperation()
                operation.completionBlock = { ends.increment() }
                return operation
            }
            for operation in operations {
                let delay = random.next() % 300
                let canceller = Thread {
                    if delay > 0 { Thread.sleep(forTimeInterval: Double(delay) / 1_000_000) }
                    operation.cancel()
                }
                let cancelsFirst = random.next() % 2 == 0
                if cancelsFirst { canceller.start() }
                queue.addOperation(operation)
                if !cancelsFirst { canceller.start() }
            }
            if !operations.allSatisfy(waitForEnd) {
                found(.survivesRaces, "It was cancelled at a random moment, and did not finish within \(seconds).")
                return
            }
            _ = eventually(within: .milliseconds(20)) { ends.value >= operations.count }
            if ends.value > operations.count {
                found(.finishesOnce, "It was cancelled at a random moment, and ended twice.")
            }
        }
    }
}
