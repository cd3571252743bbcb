import Foundation
import OperationKit

/// Starts an operation on a thread of its own.
final class Starter: @unchecked Sendable {
    private let operation: Operation
    private let returned: Signal

    init(_ operation: Operation, _ returned: Signal) {
        self.operation = operation
        self.returned = returned
    }

    func start() {
        Thread { [operation, returned] in
            operation.start()
            returned.set()
        }.start()
    }
}

/// Something that happens once.
final class Signal: @unchecked Sendable {
    private let lock = NSLock()
    private var moment: ContinuousClock.Instant?

    func set() { lock.withLock { if moment == nil { moment = .now } } }
    var isSet: Bool { time != nil }
    var time: ContinuousClock.Instant? { lock.withLock { moment } }
}

/// A number that several threads increment.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    func increment() { lock.withLock { count += 1 } }
    var value: Int { lock.withLock { count } }
}

/// Looks from a thread of its own whether an operation executes.
final class Watch: @unchecked Sendable {
    private let lock = NSLock()
    private var isOver = false
    private var hasExecuted = false

    init(_ operation: Operation) {
        Thread { [self] in
            while !lock.withLock({ isOver }) {
                if operation.isExecuting { lock.withLock { hasExecuted = true } }
                sched_yield()
            }
        }.start()
    }

    /// Stops looking.
    ///
    /// - Returns: Whether the operation has executed.
    func end() -> Bool {
        lock.withLock {
            isOver = true
            return hasExecuted
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

/// Collects the mistakes that the library notices by itself, and passes them on.
final class MisuseWatch: @unchecked Sendable {
    private let lock = NSLock()
    private var sentences: [String] = []
    private let previous = OperationDiagnostics.handler

    init() {
        let previous = previous
        OperationDiagnostics.handler = { [weak self] report in
            switch report {
            case .finishedAfterSuperMain, .lostFinish:
                self?.lock.withLock { self?.sentences.append(report.description) }
            default: break
            }
            previous?(report)
        }
    }

    /// Stops collecting.
    ///
    /// - Returns: What was noticed.
    func end() -> [String] {
        // Reports come a moment after the mistake.
        Thread.sleep(forTimeInterval: 0.02)
        OperationDiagnostics.handler = previous
        return lock.withLock { sentences }
    }
}

/// How long the machine takes to begin something.
enum Latency {
    /// Starts a thread, a block of a dispatch queue and an operation, and waits until all of them have run.
    static func measure() -> Duration {
        let began = ContinuousClock.now
        let group = DispatchGroup()
        group.enter()
        Thread { group.leave() }.start()
        DispatchQueue.global().async(group: group) {}
        group.enter()
        OperationQueue().addOperation { group.leave() }
        group.wait()
        return began.duration(to: .now)
    }
}
