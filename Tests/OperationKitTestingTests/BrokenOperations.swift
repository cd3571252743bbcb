import Foundation
import OperationKit

/// An operation of another library, as it should be, with places where subclasses break one rule each.
class ForeignOperation: Operation, @unchecked Sendable {
    enum State { case ready, executing, finished }

    let lock = NSRecursiveLock()
    var state = State.ready

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { lock.withLock { state == .executing } }
    override var isFinished: Bool { lock.withLock { state == .finished } }

    override func start() {
        if isCancelled { return finish() }
        announcing("isExecuting") { lock.withLock { if state == .ready { state = .executing } } }
        work()
    }

    override func cancel() {
        super.cancel()
        if isExecuting { finish() }
    }

    func work() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish() } }

    func finish() {
        let mayFinish = lock.withLock { () -> Bool in
            guard state != .finished, isEnding == false else { return false }
            isEnding = true
            return true
        }
        guard mayFinish else { return }
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        lock.withLock { state = .finished }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }

    var isEnding = false

    func announcing(_ key: String, _ change: () -> Void) {
        willChangeValue(forKey: key)
        change()
        didChangeValue(forKey: key)
    }
}

/// Keeps all rules, and never executes.
final class EndingAtOnce: ForeignOperation, @unchecked Sendable {
    override func start() { finish() }
}

/// Loses its end on every path.
final class NeverFinishing: ForeignOperation, @unchecked Sendable {
    override func work() {}
}

/// Loses its end if it is started on a queue.
final class NeverFinishingOnQueue: ForeignOperation, @unchecked Sendable {
    override func work() {
        if OperationQueue.current == nil { super.work() }
    }
}

/// Waits for something that does not come.
final class NeverReady: ForeignOperation, @unchecked Sendable {
    override var isReady: Bool { false }
}

/// Ready whatever it depends on.
final class AlwaysReady: ForeignOperation, @unchecked Sendable {
    override var isReady: Bool { true }
}

/// Never ready, and left to Foundation, which ends the program if it is started nevertheless.
final class NeverReadyMain: Operation, @unchecked Sendable {
    override var isReady: Bool { false }
}

/// Ready as long as it is not cancelled, whatever it depends on.
final class ReadyUnlessCancelled: Operation, @unchecked Sendable {
    override var isReady: Bool { !isCancelled }
}

/// Ready only as long as it is not cancelled.
final class NotReadyWhenCancelled: Operation, @unchecked Sendable {
    override var isReady: Bool { super.isReady && !isCancelled }
}

final class NotExecuting: ForeignOperation, @unchecked Sendable {
    override var isExecuting: Bool { false }
    override func cancel() {
        super.cancel()
        if lock.withLock({ state == .executing }) { finish() }
    }
}

/// Works in its `start()`, and says so to none.
final class NotExecutingInStart: ForeignOperation, @unchecked Sendable {
    override func start() {
        if !isCancelled { Thread.sleep(forTimeInterval: 0.01) }
        finish()
    }
}

final class Blocking: ForeignOperation, @unchecked Sendable {
    override func work() {
        Thread.sleep(forTimeInterval: 0.12)
        finish()
    }
}

/// Waits for something that does not come once it has finished, or does so from the second operation on.
final class BlockingAfterItsEnd: ForeignOperation, @unchecked Sendable {
    private let blocks: @Sendable () -> Bool

    init(blocks: @escaping @Sendable () -> Bool) {
        self.blocks = blocks
    }

    override func work() {
        finish()
        if blocks() { DispatchSemaphore(value: 0).wait() }
    }
}

final class NotAsynchronous: ForeignOperation, @unchecked Sendable {
    override var isAsynchronous: Bool { false }
}

/// The state goes back when it is cancelled twice after its end. Not before the end was announced: that would lose it, too.
/// Not when it is cancelled once, which may come late where something else is looked for.
final class GoingBack: ForeignOperation, @unchecked Sendable {
    private var hasAnnouncedItsEnd = false
    private var wasCancelledAfterItsEnd = false

    override func finish() {
        super.finish()
        if isFinished { lock.withLock { hasAnnouncedItsEnd = true } }
    }

    override func cancel() {
        super.cancel()
        lock.withLock {
            if wasCancelledAfterItsEnd { state = .executing }
            wasCancelledAfterItsEnd = hasAnnouncedItsEnd
        }
    }
}

final class NotMarking: ForeignOperation, @unchecked Sendable {
    override func cancel() {
        if isExecuting { finish() }
    }
}

/// Does not hear of a cancellation while it works, and loses its end then.
final class NotMarkingWhileWorking: ForeignOperation, @unchecked Sendable {
    private var hasLostCancellation = false

    override func cancel() {
        if isExecuting { lock.withLock { hasLostCancellation = true } } else { super.cancel() }
    }

    override func work() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
            if !self.lock.withLock({ self.hasLostCancellation }) { self.finish() }
        }
    }
}

/// Returns from `start()` when it is cancelled, and never finishes.
final class DeafWhenCancelledBefore: ForeignOperation, @unchecked Sendable {
    override func start() {
        if !isCancelled { super.start() }
    }
}

/// Finishes in `cancel()`, before its start, too.
final class FinishingInCancel: ForeignOperation, @unchecked Sendable {
    override func cancel() {
        super.cancel()
        finish()
    }
}

/// Works after a cancellation, on a queue or if it is started by hand.
final class WorkingWhenCancelledBefore: ForeignOperation, @unchecked Sendable {
    private let isOnQueue: Bool

    init(onQueue: Bool) { isOnQueue = onQueue }

    override func start() {
        if isCancelled, (OperationQueue.current == nil) == isOnQueue { return finish() }
        announcing("isExecuting") { lock.withLock { state = .executing } }
        work()
    }
}

/// Its work ends without `finish` when it was cancelled.
final class ForgettingAfterCancellation: ForeignOperation, @unchecked Sendable {
    override func cancel() { markCancelled() }
    private func markCancelled() { lock.withLock { hasBeenCancelled = true } }
    private var hasBeenCancelled = false
    override var isCancelled: Bool { lock.withLock { hasBeenCancelled } }
    override func work() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { if !self.isCancelled { self.finish() } }
    }
}

/// What its work leaves behind keeps it, unless that is cancelled.
final class Leaking: ForeignOperation, @unchecked Sendable {
    nonisolated(unsafe) static var kept: [Operation] = []
    static let keptLock = NSLock()
    override func finish() {
        if !isCancelled { Self.keptLock.withLock { unsafe Self.kept.append(self) } }
        super.finish()
    }
}

/// Keeps what was cancelled before its start.
final class LeakingWhenCancelledBefore: ForeignOperation, @unchecked Sendable {
    override func start() {
        if isCancelled { Leaking.keptLock.withLock { unsafe Leaking.kept.append(self) } }
        super.start()
    }
}

/// Keeps itself from its creation to its end, and for good if it is never started.
final class KeptUntilItsEnd: ForeignOperation, @unchecked Sendable {
    private var itself: Operation?

    override init() {
        super.init()
        itself = self
    }

    override func finish() {
        super.finish()
        _ = lock.withLock { itself.take() }
    }
}

/// Finishes a moment after `cancel()`, before its start, too.
final class FinishingAfterCancel: ForeignOperation, @unchecked Sendable {
    override func cancel() {
        super.cancel()
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.002) { self.finish() }
    }
}

/// Never ends, whatever happens to it.
final class Endless: ForeignOperation, @unchecked Sendable {
    private let started: @Sendable () -> Void

    init(started: @escaping @Sendable () -> Void) {
        self.started = started
    }

    override func start() {
        started()
        super.start()
    }

    override func finish() {}
}

/// Breaks four rules, none of which keeps it from ending.
final class BreakingSeveral: ForeignOperation, @unchecked Sendable {
    override var isAsynchronous: Bool { false }
    override var isExecuting: Bool { false }
    override func cancel() {
        if lock.withLock({ state == .executing }) { finish() }
    }
    override func work() {
        Leaking.keptLock.withLock { unsafe Leaking.kept.append(self) }
        super.work()
    }
}

/// Loses a cancellation once half of its work is done: each one, or only those on another thread than that which made it.
final class LosingLateCancellations: ForeignOperation, @unchecked Sendable {
    private let creator = Thread.current
    private let losesAll: Bool
    private var isLate = false
    private var isLost = false

    init(losesAll: Bool) {
        self.losesAll = losesAll
    }

    override func work() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
            self.lock.withLock { self.isLate = true }
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
                self.finish()
            }
        }
    }

    override func cancel() {
        lock.withLock { if isLate, losesAll || Thread.current !== creator { isLost = true } }
        super.cancel()
    }

    override func finish() {
        if !lock.withLock({ isLost }) { super.finish() }
    }
}

/// Waits for something that does not come if it is cancelled in the second half of its `main()`.
final class BlockingAfterLateCancellation: Operation, @unchecked Sendable {
    override func main() {
        Thread.sleep(forTimeInterval: 0.03)
        if isCancelled { return }
        Thread.sleep(forTimeInterval: 0.03)
        if isCancelled { DispatchSemaphore(value: 0).wait() }
    }
}

/// Leaves a moment between the look at `isCancelled` and the state that `cancel()` looks at.
final class Racing: ForeignOperation, @unchecked Sendable {
    override func start() {
        if isCancelled { return finish() }
        // Long enough for a cancellation on a machine that is busy.
        for _ in 0..<20 where !isCancelled { Thread.sleep(forTimeInterval: 0.000_5) }
        announcing("isExecuting") { lock.withLock { if state == .ready { state = .executing } } }
        work()
    }

    override func work() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { if !self.isCancelled { self.finish() } }
    }
}
