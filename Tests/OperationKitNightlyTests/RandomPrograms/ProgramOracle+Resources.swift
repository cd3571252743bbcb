import Foundation
import OperationKit
import OperationKitTestSupport

// Attempts, resources, and the circuit breaker.
extension ProgramOracle {
    /// Whether the node ended so because it did not get what it requires.
    func isRefusal(_ outcome: StressOutcome, of node: StressNode) -> Bool {
        let policies = node.policies
        return switch outcome {
        case .heldAround(node.id):
            facts.mayBeHeldAround && (!policies.resources.isEmpty || node.retry?.resource != nil)
        case .impatient(node.id): policies.patience != nil
        case .circuitOpen(node.id, _): policies.hasCircuit
        default: false
        }
    }

    /// There are as many attempts as there have to be, and none is made too early.
    mutating func judgeAttempts(of node: StressNode) {
        guard let retry = node.retry else { return }
        let attempts = (log.units[node.id] ?? [:]).sorted { $0.key < $1.key }
        // One that an open circuit refuses has a number, and does not begin: the next one may.
        let needed = retry.areStuck || retry.form == .hedging ? retry.maximum : retry.attempts
        if let last = attempts.last?.key,
            last > retry.maximum || (node.policies.hasCircuit ? attempts.count : last) > needed
        {
            complain("attempt \(last) of \(node.name) was one too many")
        }
        if facts.mustRun(node.id), isThere(node.id), !retry.areStuck, !areEnough(attempts.map(\.key), of: retry) {
            complain("\(node.name) made the attempts \(attempts.map(\.key)) instead of \(retry.attempts)")
        }
        for (earlier, later) in zip(attempts, attempts.dropFirst()) where retry.form != .hedging {
            guard let end = earlier.value.ended.first, let begin = later.value.began.first, end < begin else {
                complain("attempts \(earlier.key) and \(later.key) of \(node.name) were made at the same time")
                continue
            }
            guard retry.form == .retry else { continue }
            let passed = log.latestTime(at: begin) - log.earliestTime(at: end)
            if passed < retry.delay {
                complain("attempt \(later.key) of \(node.name) came after \(passed) s instead of \(retry.delay) s")
            }
        }
        for (number, unit) in attempts where retry.form != .retry {
            if let begin = unit.began.first { judgeTime(ofAttempt: number, begin, retry, node) }
        }
        let late = attempts.count { attempt in
            attempt.value.began.contains { wasCancelled(node.id, before: $0) }
        }
        // One may have been about to begin; those that are hedged, all together.
        if late > 1, retry.form != .hedging { complain("\(node.name) made \(late) attempts after its cancellation") }
    }

    /// Whether all attempts were made that had to be, if nothing else ended the operation.
    private func areEnough(_ attempts: [Int], of retry: StressRetry) -> Bool {
        guard retry.form == .hedging else { return attempts == Array(1...retry.attempts) }
        // One that succeeds cancels those that have not begun.
        return retry.failures < retry.maximum
            ? attempts.contains { $0 > retry.failures } : attempts == Array(1...retry.maximum)
    }

    /// Runs begin at multiples of the interval. A hedged attempt begins after the delay, or when another one fails.
    private mutating func judgeTime(ofAttempt number: Int, _ begin: Int, _ retry: StressRetry, _ node: StressNode) {
        var delays = number - 1
        if retry.form == .hedging {
            delays -= (log.units[node.id] ?? [:]).values.count { ($0.ended.first ?? .max) < begin }
        }
        let delay = retry.form == .hedging ? retry.delay : max(retry.delay, 1)
        let passed = log.latestTime(at: begin) - log.earliestTime(at: earliestStart(of: node))
        if passed < delays * delay {
            complain("attempt \(number) of \(node.name) came after \(passed) s instead of \(delays * delay) s")
        }
    }

    /// No more operations have a resource at the same time than it is for.
    mutating func judgeResources() {
        guard facts.program.needsResources else { return }
        for resource in StressResource.allCases {
            let uses = uses(of: resource)
            guard let limit = resource.limit else {
                judgeRate(uses)
                continue
            }
            let changes = uses.flatMap { [($0.begin, 1, $0.name), ($0.end, -1, $0.name)] }.sorted { $0.0 < $1.0 }
            var count = 0
            for (_, change, name) in changes {
                count += change
                if count > limit {
                    complain("\(name) had the resource \(resource), and so had \(limit) others")
                    break
                }
            }
        }
    }

    /// When operations had a resource, from the begin of their work to their end.
    private func uses(of resource: StressResource) -> [(name: String, start: Int, begin: Int, end: Int)] {
        facts.nodes.values.flatMap { node -> [(name: String, start: Int, begin: Int, end: Int)] in
            var uses: [(name: String, start: Int, begin: Int, end: Int)] = []
            let requests = node.policies.resources.contains(resource)
            if requests, node.retry?.sharesRequests != true, let begin = beginning(of: node),
                let end = log.completed[node.id]?.first?.position, begin < end
            {
                uses.append((node.name, earliestStart(of: node), begin, end))
            }
            if let retry = node.retry, retry.resource == resource || requests && retry.sharesRequests {
                for (number, unit) in log.units[node.id] ?? [:] {
                    guard let begin = unit.began.first, let end = unit.ended.first else { continue }
                    let isHedged = node.retry?.form == .hedging
                    let previous = isHedged ? nil : log.units[node.id]?[number - 1]?.ended.first
                    uses.append(("\(node.name) attempt \(number)", previous ?? earliestStart(of: node), begin, end))
                }
            }
            return uses
        }
    }

    /// In any time of the length of the limit, at most two have begun.
    private mutating func judgeRate(_ uses: [(name: String, start: Int, begin: Int, end: Int)]) {
        for use in uses {
            let start = log.earliestTime(at: use.start)
            let others = uses.filter { other in
                log.earliestTime(at: other.start) >= start
                    && log.latestTime(at: other.begin) < start + StressResource.rateDuration
            }
            if others.count > 2 {
                return complain("\(others.map(\.name).sorted().joined(separator: " ")) had a permit of the rate")
            }
        }
    }

    /// A circuit breaker opens after failures, and then lets nothing through before its time is over.
    mutating func judgeCircuit(_ node: StressNode) {
        guard case .circuitOpen(node.id, let seconds)? = log.outcome(of: node.id),
            let position = log.completed[node.id]?.first?.position
        else { return }
        let all = facts.nodes.values.filter(\.policies.hasCircuit)
        let others = all.filter { $0.id != node.id }
        let calls = all.flatMap { outcomes(ofCalls: $0, before: position) }
        if calls.count < 2 || !calls.contains(true) {
            complain("\(node.name) found the circuit open, and nothing had failed")
        }
        guard let seconds else { return }
        let end = log.earliestTime(at: earliestStart(of: node)) + seconds
        for other in others where earliestStart(of: other) > position {
            if let begin = beginning(of: other), log.latestTime(at: begin) < end {
                complain("\(other.name) ran after \(node.name) had found the circuit open")
            }
        }
    }

    /// For each call of a circuit breaker that a node had made before, whether it failed.
    private func outcomes(ofCalls node: StressNode, before position: Int) -> [Bool] {
        if let retry = node.retry, retry.sharesRequests {
            let ended = (log.units[node.id] ?? [:]).filter { $0.value.ended.contains { $0 < position } }
            return ended.map { retry.failure(of: node.id, after: $0.key) != nil }
        }
        guard let end = log.completed[node.id]?.first, end.position < position else { return [] }
        if case .circuitOpen = end.outcome { return [] }
        return [end.outcome.isFailure]
    }
}
