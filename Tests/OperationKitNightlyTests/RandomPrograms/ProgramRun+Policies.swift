import Foundation
import OperationKit
import OperationKitTestSupport

/// A condition that writes down its evaluation.
private struct ProgramCondition: OperationCondition {
    let run: ProgramRun
    let id: Int
    let index: Int
    let condition: StressCondition

    var name: String { "c\(index)" }

    private var prerequisiteKey: String { condition.prerequisite?.key(id, index) ?? "" }

    func prerequisite(for operation: AsyncOperation) -> Operation? {
        condition.prerequisite.map { run.operation(of: $0, key: prerequisiteKey) }
    }

    func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
        run.log.add(.conditionBegan(id, index: index))
        defer { run.log.add(.conditionEnded(id, index: index)) }
        switch condition.wait {
        case .none: break
        case .yields: for _ in 0...id % 4 { await Task.yield() }
        case .gate: await run.gate.opened()
        case .untilCancelled: try? await cancellation()
        }
        switch condition.answer {
        case .satisfied: return .satisfied
        case .failed: return .failed(StressError.condition(id))
        case .skipped: return .skipped
        case .throwing: throw StressError.condition(id)
        }
    }
}

// Conditions, timeouts, and the time.
extension ProgramRun {
    /// Gives an operation its policies.
    func applyPolicies(of node: StressNode, to operation: Operation) {
        guard let operation = operation as? AsyncOperation else { return }
        let policies = node.policies
        let needsClock = policies.timeout != nil || policies.patience != nil || node.retry != nil
        if needsClock || node.leaf?.kind == .delay { operation.clock = clock }
        requireResources(of: node, for: operation)
        if let timeout = policies.timeout { operation.timeout = .seconds(timeout.seconds) }
        for (index, condition) in policies.conditions.enumerated() {
            operation.addCondition(ProgramCondition(run: self, id: node.id, index: index, condition: condition))
        }
    }

    /// Makes the operation that a condition needs.
    fileprivate func operation(of prerequisite: StressPrerequisite, key: String) -> Operation {
        let operation = AsyncBlockOperation(name: "prerequisite") { [self] finish in
            log.add(.prerequisiteBegan(key))
            hop { [self] in
                log.add(.prerequisiteEnded(key, isCancelled: finish.isCancelled))
                finish(prerequisite.fails ? StressError.prerequisite : nil)
            }
        }
        return tracker.track(operation, "the prerequisite of \(key)")
    }

    func startAfterDelay(_ root: Operation) {
        let queue = tracker.track(OperationQueue(), "queue")
        let delay = queue.addOperation(root, after: .seconds(StressProgram.startDelay), clock: clock)
        tracker.track(delay, "the delay of the root")
    }

    /// Lets time pass. Actions on several threads do so one after the other.
    func advance(by seconds: Int) {
        clockLock.withLock { advance(to: Int(clock.now.offset.components.seconds) + seconds) }
    }

    private func advance(to seconds: Int) {
        log.add(.advancing(to: seconds))
        clock.advance(to: ManualClock.Instant(offset: .seconds(seconds)))
        log.add(.advanced(to: seconds))
    }

    /// Blocks until everything has ended. When nothing happens any more, opens the gate, and then lets time pass until
    /// the next deadline, again and again.
    ///
    /// - Returns: Whether it has ended, in time.
    @available(*, noasync)
    func waitUntilEnd(before deadline: Date) -> Bool {
        guard program.needsTime else { return log.waitUntilClosed(before: deadline) }
        var lastCount = -1
        while !log.waitUntilClosed(before: min(deadline, Date(timeIntervalSinceNow: 0.000_5))) {
            if Date() >= deadline { return false }
            if log.count == lastCount { goOn() }
            lastCount = log.count
        }
        return true
    }

    private func goOn() {
        if !gate.isOpen { return gate.open() }
        clockLock.withLock {
            guard let next = clock.deadlines.first, next <= .seconds(StressTimeout.horizon) else { return }
            advance(to: Int(next.components.seconds))
        }
    }

    /// What should be gone: operations, and deadlines of those that have ended.
    var leftBehind: [String] {
        tracker.alive + clock.deadlines.map { "a deadline at \($0)" }
    }
}
