import Foundation
import OperationKit

/// What surrounds work: a service that fails is called again, a step that takes too long is stopped, and two operations
/// exclude each other.
enum PoliciesScenario {
    private static let endless = 60.0
    private static let failures = 2

    static func play(on bench: Bench) -> Section.Findings {
        let policy = RetryPolicy(maximumAttempts: 5, backoff: .exponential(bench.duration(0.2)), jitter: .none)
        let retry = RetryOperation(policy, name: "service") { attempt in
            bench.async("call-\(attempt)", 0.2, failure: attempt <= failures ? ServiceError() : nil)
        }

        let slow = bench.async("slow", endless)
        slow.timeout = bench.duration(0.6)

        let database = ExclusiveAccess("database")
        let writers = [bench.async("import", 0.5), bench.async("export", 0.4)]
        for writer in writers { writer.require(database) }

        bench.enqueue(retry, slow, writers[0], writers[1])
        return {
            retry.attempts.map { attempt in
                "service, attempt \(attempt.number): " + (attempt.error?.localizedDescription ?? "it answered.")
            } + [slow.error.map { "slow: \($0.localizedDescription)" } ?? "slow: in time"]
        }
    }
}

/// What the service says when it is asked for too much.
private struct ServiceError: LocalizedError, CustomStringConvertible {
    var description: String { "The service is busy." }
    var errorDescription: String? { description }
}
