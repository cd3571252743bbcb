import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@Suite("Errors of policies") struct PolicyErrorTests {
    private static let cause = CocoaError(.fileNoSuchFile, userInfo: [NSLocalizedDescriptionKey: "There is no file."])

    private typealias Row = (error: any LocalizedError & CustomNSError, code: Int, text: String)

    private static func timedOut(_ holders: String...) -> ResourceError {
        .timedOut(operation: "load", resource: "disk", duration: .seconds(1), holders: holders)
    }

    private static let rows: [Row] = [
        (
            OperationTimeoutError(operation: "load", timeout: .seconds(5)), 1,
            "The operation “load” took longer than its timeout of 5.0 seconds."
        ),
        (
            ConditionError.failed(operation: "load", condition: "signed in", error: cause), 1,
            "The operation “load” did not run, because its condition “signed in” failed: There is no file."
        ),
        (
            ConditionError.prerequisiteFailed(
                operation: "load", condition: "signed in", prerequisite: "sign in", error: cause), 2,
            "The operation “load” did not run, because “sign in”, which its condition “signed in” needs, failed: There is no file."
        ),
        (
            ConditionError.satisfied(operation: "load", condition: "offline"), 3,
            "The condition “offline” of the operation “load” is satisfied."
        ),
        (
            RetryError.invalidPolicy(operation: "load", problem: "its maximumAttempts is 0"), 1,
            "The operation “load” did not run, because of its policy: its maximumAttempts is 0."
        ),
        (
            RetryError.budgetExhausted(operation: "load", attempts: 2, error: cause), 2,
            "The operation “load” was not tried again after 2 attempts, because the retry budget is exhausted. The last one failed: There is no file."
        ),
        (
            RetryError.operationReused(operation: "load", attempt: 2), 3,
            "Call 2 of the closure of “load” returned an operation that was used before. Create a new one each time."
        ),
        (
            CircuitOpenError(operation: "load", circuit: "server", retryAfter: .seconds(2)), 1,
            "The operation “load” did not run, because the circuit breaker “server” is open, for another 2.0 s."
        ),
        (
            CircuitOpenError(operation: "load", circuit: "server", retryAfter: nil), 1,
            "The operation “load” did not run, because the circuit breaker “server” lets no other operation through until those on trial have ended."
        ),
        (
            ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 0), 1,
            "The operation “load” did not run, because “disk” was not available, and no operation may wait for it."
        ),
        (
            ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 1), 1,
            "The operation “load” did not run, because 1 operation waits for “disk” already, and no more may."
        ),
        (
            ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 5), 1,
            "The operation “load” did not run, because 5 operations wait for “disk” already, and no more may."
        ),
        (
            ResourceError.heldByComposite(operation: "load", resource: "disk", composite: "sync"), 2,
            "The operation “load” did not run, because “sync” around it has “disk” until it has ended."
        ),
        (
            timedOut("copy", "backup", "move"), 3,
            "The operation “load” did not run, because “disk” was not available within 1.0 seconds: it is held by “copy”, “backup” and “move”."
        ),
        (
            timedOut(), 3,
            "The operation “load” did not run, because “disk” was not available within 1.0 seconds."
        ),
    ]

    @Test("Each error of a policy has a domain, a code and a sentence") func conversions() {
        for (original, code, text) in Self.rows {
            let error = original as NSError
            #expect(error.domain == "OperationKit.\(type(of: original))" && error.code == code, "\(text)")
            #expect(original.errorDescription == text && error.localizedDescription == text)
            let underlying = error.userInfo[NSUnderlyingErrorKey] as? NSError
            #expect((underlying?.code == CocoaError.fileNoSuchFile.rawValue) == text.contains("There is no file."))
            #expect((original as any Error).isCancellation == false)
        }
    }

    @Test("What the error of a policy wraps decides whether it stands for a cancellation") func cancellations() {
        let cancelled = CancellationError()
        let errors: [any Error] = [
            ConditionError.failed(operation: "a", condition: "b", error: cancelled),
            ConditionError.prerequisiteFailed(operation: "a", condition: "b", prerequisite: "c", error: cancelled),
            RetryError.budgetExhausted(operation: "a", attempts: 1, error: cancelled),
        ]
        for error in errors { #expect(error.isCancellation) }
        let text = errors[0].localizedDescription
        #expect(text == "The operation “a” did not run, because its condition “b” was cancelled.")
        #expect(errors[2].localizedDescription.contains("after 1 attempt,"))
    }

    @Test("An open circuit says when to try again") func retryAfter() {
        let error: any Error = CircuitOpenError(operation: "load", circuit: "server", retryAfter: .seconds(2))
        #expect((error as? any RetryAfterProviding)?.retryAfter == .seconds(2))
    }

    @Test("Errors of policies that wrap each other without end have a text and a conversion") func nesting() {
        var error: any Error = Self.cause
        for _ in 0..<10_000 { error = ConditionError.failed(operation: "a", condition: "b", error: error) }
        #expect(error.localizedDescription.count < 1_000)
        #expect((error as NSError).userInfo[NSUnderlyingErrorKey] != nil)
        #expect(!error.isCancellation)
    }
}
