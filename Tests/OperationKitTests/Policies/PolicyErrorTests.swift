import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@Suite("Errors of policies") struct PolicyErrorTests {
    struct Expectation: Sendable, CustomTestStringConvertible {
        let error: any LocalizedError & CustomNSError
        let domain: String
        let code: Int
        let description: String
        var underlying: CocoaError.Code?
        var testDescription: String { description }
    }

    private static let cause = CocoaError(.fileNoSuchFile, userInfo: [NSLocalizedDescriptionKey: "There is no file."])

    static var all: [Expectation] {
        [
            Expectation(
                error: OperationTimeoutError(operation: "load", timeout: .seconds(5)), domain: "OperationTimeoutError",
                code: 1,
                description: "The operation “load” took longer than its timeout of 5.0 seconds."),
            Expectation(
                error: ConditionError.failed(operation: "load", condition: "signed in", error: cause),
                domain: "ConditionError",
                code: 1,
                description:
                    "The operation “load” did not run, because its condition “signed in” failed: There is no file.",
                underlying: .fileNoSuchFile),
            Expectation(
                error: ConditionError.prerequisiteFailed(
                    operation: "load", condition: "signed in", prerequisite: "sign in", error: cause),
                domain: "ConditionError", code: 2,
                description:
                    "The operation “load” did not run, because “sign in”, which its condition “signed in” needs, failed: There is no file.",
                underlying: .fileNoSuchFile),
            Expectation(
                error: ConditionError.satisfied(operation: "load", condition: "offline"),
                domain: "ConditionError", code: 3,
                description: "The condition “offline” of the operation “load” is satisfied."),
            Expectation(
                error: RetryError.invalidPolicy(operation: "load", problem: "its maximumAttempts is 0"),
                domain: "RetryError",
                code: 1,
                description: "The operation “load” did not run, because of its policy: its maximumAttempts is 0."),
            Expectation(
                error: RetryError.budgetExhausted(operation: "load", attempts: 2, error: cause), domain: "RetryError",
                code: 2,
                description:
                    "The operation “load” was not tried again after 2 attempts, because the retry budget is exhausted. The last one failed: There is no file.",
                underlying: .fileNoSuchFile),
            Expectation(
                error: RetryError.operationReused(operation: "load", attempt: 2), domain: "RetryError", code: 3,
                description:
                    "Call 2 of the closure of “load” returned an operation that was used before. Create a new one each time."
            ),
            Expectation(
                error: CircuitOpenError(operation: "load", circuit: "server", retryAfter: .seconds(2)),
                domain: "CircuitOpenError", code: 1,
                description:
                    "The operation “load” did not run, because the circuit breaker “server” is open, for another 2.0 s."
            ),
            Expectation(
                error: CircuitOpenError(operation: "load", circuit: "server", retryAfter: nil),
                domain: "CircuitOpenError",
                code: 1,
                description:
                    "The operation “load” did not run, because the circuit breaker “server” lets no other operation through until those on trial have ended."
            ),
            Expectation(
                error: ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 0),
                domain: "ResourceError", code: 1,
                description:
                    "The operation “load” did not run, because “disk” was not available, and no operation may wait for it."
            ),
            Expectation(
                error: ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 1),
                domain: "ResourceError", code: 1,
                description:
                    "The operation “load” did not run, because 1 operation waits for “disk” already, and no more may."),
            Expectation(
                error: ResourceError.tooManyWaiting(operation: "load", resource: "disk", maximum: 9),
                domain: "ResourceError", code: 1,
                description:
                    "The operation “load” did not run, because 9 operations wait for “disk” already, and no more may."),
            Expectation(
                error: ResourceError.heldByComposite(operation: "load", resource: "disk", composite: "sync"),
                domain: "ResourceError", code: 2,
                description:
                    "The operation “load” did not run, because “sync” around it has “disk” until it has ended."
            ),
            Expectation(
                error: ResourceError.timedOut(
                    operation: "load", resource: "disk", duration: .seconds(1), holders: ["copy", "backup"]),
                domain: "ResourceError", code: 3,
                description:
                    "The operation “load” did not run, because “disk” was not available within 1.0 seconds: it is held by “copy” and “backup”."
            ),
            Expectation(
                error: ResourceError.timedOut(
                    operation: "load", resource: "disk", duration: .seconds(1), holders: ["copy"]),
                domain: "ResourceError", code: 3,
                description:
                    "The operation “load” did not run, because “disk” was not available within 1.0 seconds: it is held by “copy”."
            ),
            Expectation(
                error: ResourceError.timedOut(
                    operation: "load", resource: "disk", duration: .seconds(1), holders: ["a", "b", "c"]),
                domain: "ResourceError", code: 3,
                description:
                    "The operation “load” did not run, because “disk” was not available within 1.0 seconds: it is held by “a”, “b” and “c”."
            ),
            Expectation(
                error: ResourceError.timedOut(operation: "load", resource: "disk", duration: .seconds(1), holders: []),
                domain: "ResourceError", code: 3,
                description: "The operation “load” did not run, because “disk” was not available within 1.0 seconds."),
        ]
    }

    @Test("Each error of a policy has a domain, a code and a sentence", arguments: all)
    func conversion(expectation: Expectation) {
        let error = expectation.error as NSError
        #expect(error.domain == "OperationKit." + expectation.domain)
        #expect(error.code == expectation.code)
        #expect(expectation.error.errorDescription == expectation.description)
        #expect(error.localizedDescription == expectation.description)
        let underlying = error.userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(underlying?.code == expectation.underlying?.rawValue)
        #expect((expectation.error as any Error).isCancellation == false)
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
