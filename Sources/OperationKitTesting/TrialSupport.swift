import Foundation
import OperationKit

/// Starts an operation on a thread of its own.
final class Starter: @unchecked Sendable {
    /// What was seen on the thread right after `start()` had returned.
    struct Return: Sendable {
        let began: ContinuousClock.Instant
        let duration: Duration
        let isExecuting, isFinished: Bool
    }

    private let lock = NSLock()
    private var seen: Return?

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - operation: What is started.
    ///   - prepare: What the thread does just before.
    init(_ operation: Operation, prepare: @escaping @Sendable () -> Void = {}) {
        Thread { [self] in
            prepare()
            let began = ContinuousClock.now
            operation.start()
            let duration = began.duration(to: .now)
            // In this order: an end in between is none.
            let isExecuting = operation.isExecuting
            let value = Return(
                began: began, duration: duration, isExecuting: isExecuting, isFinished: operation.isFinished)
            lock.withLock { seen = value }
        }.start()
    }

    var returned: Return? { lock.withLock { seen } }
}

/// A number that several threads increment.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    func increment() { lock.withLock { count += 1 } }
    var value: Int { lock.withLock { count } }
}

/// Looks from a thread of its own how long an operation executes, until it is ended, or the trial is.
final class Watch: @unchecked Sendable {
    /// How long it looks without a pause. Later it leaves the processor to others: the operation may never end.
    static let eagerness = Duration.milliseconds(100)

    private let lock = NSLock()
    private var isOver = false
    private var executed: (first: ContinuousClock.Instant, last: ContinuousClock.Instant)?

    init(_ operation: Operation, _ record: TrialRecord) {
        Thread { [self] in
            let began = ContinuousClock.now
            while !lock.withLock({ isOver }), !record.hasEnded {
                let (isExecuting, now) = (operation.isExecuting, ContinuousClock.now)
                if isExecuting { lock.withLock { executed = (executed?.first ?? now, now) } }
                if began.duration(to: now) < Self.eagerness {
                    sched_yield()
                } else {
                    Thread.sleep(forTimeInterval: 0.001)
                }
            }
        }.start()
    }

    /// Stops looking.
    ///
    /// - Returns: How long the operation was seen to execute.
    func end() -> Duration {
        lock.withLock {
            isOver = true
            return executed.map { $0.first.duration(to: $0.last) } ?? .zero
        }
    }
}

/// Random numbers that are the same for the same seed.
struct Random {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// Waits that take as long as the machine is slow.
enum Patience {
    /// Waits until something holds, or until it should have come.
    ///
    /// Time alone proves nothing: on a machine that is busy, or that stops for a while, it passes without anything having run. So the wait
    /// ends when the time has passed and, besides, a thread, a dispatch queue and a task have been started one after the other as often as
    /// that takes on an idle machine. If `isOver` becomes true, it ends earlier.
    static func wait(_ limit: Duration, isOver: () -> Bool = { false }, until condition: () -> Bool) -> Bool {
        let began = ContinuousClock.now
        var beats = 0
        while true {
            // Rarely after a while, because what is waited for needs the processor.
            for _ in 0..<10 {
                if condition() { return true }
                if isOver() { return false }
                Thread.sleep(forTimeInterval: beats == 0 ? 0.000_2 : 0.001)
            }
            let passed = began.duration(to: .now)
            if passed > limit, limit < .milliseconds(10) * beats || passed > limit * 20 { return condition() }
            beat()
            beats += 1
        }
    }

    private static func beat() {
        let group = DispatchGroup()
        group.enter()
        Thread {
            DispatchQueue.global().async { Task { group.leave() } }
        }.start()
        _ = group.wait(timeout: .now() + 1)
    }
}
