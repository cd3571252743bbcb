import Foundation

/// Runs a body on a thread of its own, where it may block, and suspends until it returns. The size of the stack is in
/// bytes; a small one shows recursion.
package func onThread<Answer: Sendable>(
    stackSize: Int? = nil, _ body: @escaping @Sendable () -> Answer
) async -> Answer {
    await withCheckedContinuation { continuation in
        // When the caller goes on, the thread holds nothing of it. A process that ended then would seem to leak it.
        let body = Shared<(@Sendable () -> Answer)?>(body)
        let thread = Thread {
            let answer = body.change { $0.take() }!()
            continuation.resume(returning: answer)
        }
        if let stackSize { thread.stackSize = stackSize }
        thread.start()
    }
}

/// Notes when something is to go on, on the thread that lets it.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class NotingExecutor: TaskExecutor {
    private let note: @Sendable () -> Void

    package init(_ note: @escaping @Sendable () -> Void) {
        self.note = note
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        note()
        let job = UnownedJob(job)
        elsewhere { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Blocks the current thread, in a task that must not.
package func block(until gate: Gate) {
    gate.pass()
}

/// The stack that operations of a queue get on Apple platforms, and that nothing here may overflow.
package let workerStackSize = 512 * 1024

/// Runs every body on a thread of its own, all let go at the same moment, and suspends until all have returned.
package func concurrently(_ bodies: [@Sendable () -> Void]) async {
    let line = StartLine(bodies.count)
    await withTaskGroup(of: Void.self) { group in
        for body in bodies {
            group.addTask {
                await onThread {
                    line.meet()
                    body()
                }
            }
        }
    }
}

/// Runs every body on a thread of its own, again and again: each round prepares a subject, lets all bodies go at it
/// from one start line, each after a short random delay, and then checks it.
///
/// - Parameters:
///   - rounds: The number of rounds in the long extent. The short one has a twelfth of them.
///   - seed: The seed of the delays. Callers put it in the message of a failing check.
///   - prepare: Makes the subject of a round.
///   - bodies: What races.
///   - check: Called once all bodies have returned.
package func race<Subject: Sendable>(
    rounds: Int, seed: UInt64, prepare: @escaping @Sendable (_ round: Int) -> Subject,
    _ bodies: [@Sendable (Subject) -> Void], check: @escaping @Sendable (_ subject: Subject, _ round: Int) -> Void
) async {
    let subjects = Shared<Subject?>(nil)
    let begin = StartLine(bodies.count)
    let end = StartLine(bodies.count)
    await withTaskGroup(of: Void.self) { group in
        for (lane, body) in bodies.enumerated() {
            group.addTask {
                await onThread {
                    var random = SplitMix64(seed: seed &+ UInt64(lane))
                    for round in 0..<TestExtent.choose(rounds / 12, long: rounds) {
                        if lane == 0 { subjects.value = prepare(round) }
                        begin.meet()
                        guard let subject = subjects.value else { return }
                        random.spinRandomly()
                        body(subject)
                        end.meet()
                        if lane == 0 {
                            subjects.value = nil
                            check(subject, round)
                        }
                    }
                }
            }
        }
    }
}

/// Where a number of threads meet, to go on together. Can be used again and again by the same threads.
package final class StartLine: @unchecked Sendable {
    private let condition = NSCondition()
    private let count: Int
    private var arrived = 0
    private var round = 0

    package init(_ count: Int) {
        self.count = count
    }

    /// Blocks until all are here.
    @available(*, noasync)
    package func meet() {
        condition.withLock {
            arrived += 1
            let mine = round
            if arrived == count {
                arrived = 0
                round += 1
                condition.broadcast()
            }
            while round == mine { condition.wait() }
        }
    }
}
