import Foundation
import OperationKit

/// What surrounds work: a service that fails is called again, a step that takes too long is stopped, and two operations
/// exclude each other.
enum PoliciesScenario {
    private static let endless = 60.0
    private static let failures = 2

    static func play(on bench: Bench) async -> [String] {
        let service = bench.whole("service")
        let retry = retry(of: service, on: bench)

        let slow = bench.async("slow", endless)
        slow.timeout = bench.duration(0.6)

        let database = ExclusiveAccess("database")
        let writers = [bench.async("import", 0.5), bench.async("export", 0.4)]
        for writer in writers { writer.require(database) }

        bench.queue.addOperation(retry)
        bench.enqueue(slow, writers[0], writers[1])
        for report in [service.report, slow.report] + writers.map(\.report) {
            await bench.log.reached(.completion, of: report.subject)
        }
        return sentences(retry) + [slow.error.map { "slow: \($0.localizedDescription)" } ?? "slow: in time"]
    }

    /// Calls a service that fails twice, each time after a longer pause.
    private static func retry(of service: Whole, on bench: Bench) -> RetryOperation<Void, Void> {
        var policy = RetryPolicy(maximumAttempts: 5, backoff: .exponential(bench.duration(0.2)), jitter: .none)
        policy.shouldRetry = { error, attempt in
            service.report(.progress, "attempt \(attempt) failed: \(error.localizedDescription)")
            return true
        }
        let retry = RetryOperation(policy, name: "service") { attempt in
            if attempt == 1 { service.report(.started) }
            let call = bench.async("call-\(attempt)", 0.2, failure: attempt <= failures ? ServiceError() : nil)
            call.report(.enqueued)
            return call
        }
        service.follow(retry)
        return retry
    }

    private static func sentences(_ retry: RetryOperation<Void, Void>) -> [String] {
        retry.attempts.map { attempt in
            "service, attempt \(attempt.number): " + (attempt.error?.localizedDescription ?? "it answered.")
        }
    }
}

/// What the service says when it is asked for too much.
private struct ServiceError: LocalizedError {
    var errorDescription: String? { "The service is busy." }
}
