import Foundation
import OperationKit

/// Changes its state and tells nothing of it.
final class Silent: ForeignOperation, @unchecked Sendable {
    override func finish() { lock.withLock { state = .finished } }
}

/// Ends in silence when it is cancelled while it works: if it was started by hand, if it runs on a queue, or if another thread than the one
/// that made it cancels it. A moment later, because on Linux a queue sees an end that comes before start() has returned.
final class SilentWhenCancelled: ForeignOperation, @unchecked Sendable {
    enum Place { case byHand, onQueue, onOtherThread }

    private let place: Place
    private let creator = Thread.current
    private var isOnQueue = false

    init(_ place: Place) {
        self.place = place
    }

    override func start() {
        lock.withLock { isOnQueue = OperationQueue.current != nil }
        super.start()
    }

    override func work() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { self.finish() } }

    override func cancel() {
        let (isOnQueue, isOnCreator) = (lock.withLock { self.isOnQueue }, Thread.current === creator)
        let isSilent =
            switch place {
            case .byHand: !isOnQueue && isOnCreator
            case .onQueue: isOnQueue && isOnCreator
            case .onOtherThread: !isOnCreator
            }
        lock.withLock {
            guard isSilent, state == .executing, !isEnding else { return }
            isEnding = true
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.02) {
                self.lock.withLock { self.state = .finished }
            }
        }
        super.cancel()
    }
}

/// Ends in silence when it is started after a cancellation.
final class SilentWhenCancelledBefore: ForeignOperation, @unchecked Sendable {
    override func start() {
        if isCancelled { lock.withLock { state = .finished } } else { super.start() }
    }
}

/// Announces its end with the lock held that its state takes, so that what is told of it waits for good, and so do all that ask later.
final class AnnouncingUnderLock: Operation, @unchecked Sendable {
    private let lock = NSLock()
    private var state = ForeignOperation.State.ready

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { lock.withLock { state == .executing } }
    override var isFinished: Bool { lock.withLock { state == .finished } }

    override func start() {
        lock.withLock { state = .executing }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) {
            self.lock.withLock {
                self.willChangeValue(forKey: "isFinished")
                self.state = .finished
                self.didChangeValue(forKey: "isFinished")
            }
        }
    }
}

/// Takes its end back when it is cancelled while it works.
final class GoingBackWhenCancelled: ForeignOperation, @unchecked Sendable {
    override func cancel() {
        let wasExecuting = isExecuting
        super.cancel()
        if wasExecuting { lock.withLock { state = .executing } }
    }
}

/// Goes on executing once it has finished.
final class ExecutingAfterItsEnd: ForeignOperation, @unchecked Sendable {
    override var isExecuting: Bool { lock.withLock { state != .ready } }
}

/// Calls its completion block by itself.
final class EndingTwice: ForeignOperation, @unchecked Sendable {
    override func finish() {
        completionBlock?()
        super.finish()
    }
}

/// Calls the completion block of one that was cancelled while it worked a second time, when the next one starts.
final class EndingTwiceWhenCancelled: ForeignOperation, @unchecked Sendable {
    nonisolated(unsafe) private static var block: (() -> Void)?
    private static let blockLock = NSLock()

    override func cancel() {
        if isExecuting { Self.blockLock.withLock { unsafe Self.block = completionBlock } }
        super.cancel()
    }

    override func start() {
        Self.blockLock.withLock { unsafe Self.block.take() }?()
        super.start()
    }
}

/// Ends when it is cancelled, and calls its completion block again when its work is over, if it still exists then.
final class EndingAgainLate: ForeignOperation, @unchecked Sendable {
    private var block: (() -> Void)?

    override func work() {
        lock.withLock { block = completionBlock }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { [weak self] in
            if self?.isFinished == true { self?.block?() } else { self?.finish() }
        }
    }
}

/// Ends when it is cancelled while it works, and does not say that it was cancelled.
final class MarkingOnlyBeforeItsStart: ForeignOperation, @unchecked Sendable {
    override func cancel() { if isExecuting { finish() } else { super.cancel() } }

    override func work() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { self.finish() } }
}

/// Waits in its `deinit` for something that does not come: always, or if it has worked.
final class BlockingInDeinit: ForeignOperation, @unchecked Sendable {
    private let needsWork: Bool

    init(needsWork: Bool) { self.needsWork = needsWork }

    deinit { if !needsWork || isFinished { DispatchSemaphore(value: 0).wait() } }
}

/// Calls its completion block a second time when it is cancelled for the second time after its end.
final class EndingTwiceAfterItsEnd: ForeignOperation, @unchecked Sendable {
    private var block: (() -> Void)?
    private var lateCancellationCount = 0

    override func finish() {
        lock.withLock { block = block ?? completionBlock }
        super.finish()
    }

    override func cancel() {
        super.cancel()
        let isSecond = lock.withLock { () -> Bool in
            if state == .finished { lateCancellationCount += 1 }
            return lateCancellationCount == 2
        }
        if isSecond { block?() }
    }
}

/// Drops its completion block when it is cancelled.
final class DroppingItsBlockWhenCancelled: AsyncOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish() }
    }

    override func didCancel() {
        completionBlock = nil
        finish(withError: CancellationError())
    }
}

/// Drops its completion block.
final class DroppingItsCompletionBlock: ForeignOperation, @unchecked Sendable {
    override func start() {
        completionBlock = nil
        super.start()
    }
}
