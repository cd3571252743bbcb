import Foundation
import OperationKit

/// An `AsyncOperation` that is never ready.
final class NeverReadyAsync: AsyncOperation, @unchecked Sendable {
    override var isReady: Bool { false }
}

/// An `AsyncOperation` that is ready whatever it depends on.
final class AlwaysReadyAsync: AsyncOperation, @unchecked Sendable {
    override var isReady: Bool { true }
}

/// Becomes ready a little later, and says so, or not.
final class ReadyLater: AsyncOperation, @unchecked Sendable {
    private let lock = NSLock()
    private var becameReady = false

    init(announcesIt: Bool) {
        super.init()
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) {
            if announcesIt { self.willChangeValue(forKey: "isReady") }
            self.lock.withLock { self.becameReady = true }
            if announcesIt { self.didChangeValue(forKey: "isReady") }
        }
    }

    override var isReady: Bool { super.isReady && lock.withLock { becameReady } }
}

/// Keeps what is cancelled while it works.
final class LeakingWhenCancelled: AsyncOperation, @unchecked Sendable {
    override func main() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish() } }

    override func didCancel() {
        Leaking.keptLock.withLock { unsafe Leaking.kept.append(self) }
        finish(withError: CancellationError())
    }
}

/// An `AsyncOperation` that calls `super.main()`.
final class CallingSuper: AsyncOperation, @unchecked Sendable {
    override func main() {
        super.main()
        DispatchQueue.global().async { self.finish() }
    }
}

/// An `AsyncOperation` whose hook does not stop its work.
final class NotStopping: AsyncOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { if !self.isCancelled { self.finish() } }
    }
}

/// Ends when the compound around it is cancelled, and not when other code finishes that.
final class LookingAtItsCompound: AsyncOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { if !self.isCancelled { self.finish() } }
    }

    override func didCancel() {
        if enclosingComposite?.isCancelled == true { finish(withError: CancellationError()) }
    }
}

/// Waits in its hook for work that has noticed the cancellation, and says nothing.
final class WaitingInCancel: AsyncOperation, @unchecked Sendable {
    private let workHasEnded = DispatchSemaphore(value: 0)

    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
            if self.isCancelled { return }
            self.workHasEnded.signal()
            self.finish()
        }
    }

    override func didCancel() {
        workHasEnded.wait()
        finish(withError: CancellationError())
    }
}

/// Waits in its hook until its work has ended.
final class WaitingForItsWork: AsyncOperation, @unchecked Sendable {
    private let workHasEnded = DispatchSemaphore(value: 0)
    private let seconds: Double
    private let waits: @Sendable () -> Bool

    init(seconds: Double = 0.25, _ waits: @escaping @Sendable () -> Bool = { true }) {
        (self.seconds, self.waits) = (seconds, waits)
    }

    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
            self.workHasEnded.signal()
            self.finish()
        }
    }

    override func didCancel() { if waits() { workHasEnded.wait() } }
}

/// Succeeds without an output when it is cancelled.
final class EmptyWhenCancelled: IOOperation<Void, Int>, @unchecked Sendable {
    override func main(input: Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish(with: 1) }
    }
    override func didCancel() { finish(withError: nil) }
}

/// Succeeds without an output.
final class WithoutOutput: IOOperation<Void, Int>, @unchecked Sendable {
    override func main(input: Void) { finish(withError: nil) }
}

/// Gives its input back.
final class Echo: IOOperation<Int, Int>, @unchecked Sendable {
    override func main(input: Int) {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish(with: input) }
    }
    override func didCancel() { finish(withError: CancellationError()) }
}

/// Adds its children when it is started.
final class Preparing: CompoundOperation, @unchecked Sendable {
    private let child: @Sendable () -> Operation

    init(_ child: @escaping @Sendable () -> Operation) {
        self.child = child
        super.init(name: "sync")
    }

    override func prepare() throws {
        for operation in [child(), child()] { try addOperation(operation) }
    }
}
