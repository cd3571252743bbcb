import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The errors of data flow, policies and coordination, as people and as older code meet them.
@Suite("Public errors") struct ErrorTests {
    private static let cause = CocoaError(.fileNoSuchFile, userInfo: [NSLocalizedDescriptionKey: "There is no file."])

    private typealias Row = (error: any LocalizedError & CustomNSError, code: Int, text: String)

    private static let dataFlow: [Row] = [
        (IOOperationError.missingInput(operation: "load"), 1, "was started without an input"),
        (IOOperationError.missingOutput(operation: "load"), 2, "finished without an output"),
        (OperationQueueError.cannotBeAdded(operation: "load"), 1, "cannot be added"),
        (
            OperationQueueError.givenTwice(operation: "load"), 2,
            "The operation “load” was given twice, so nothing was added. Give each operation once."
        ),
        (OperationQueueError.invalidLimit(queue: "load", limit: 0), 3, "“load”"),
        (
            DependencyError.dependencyFailed(operation: "load", dependency: "find", error: CancellationError()), 1,
            "because “find” was cancelled"
        ),
        (
            DependencyError.dependencyFailed(operation: "load", dependency: "find", error: cause), 1,
            "The operation “load” did not run, because “find” failed: There is no file."
        ),
        (
            DependencyError.dependencyUnfinished(operation: "load", dependency: "find"), 2,
            "“find” had not finished. Put “load” on a queue"
        ),
        (
            ChainError.alreadyUsed(operation: "load", chain: "macro"), 1,
            "“macro” did not run, because “load” is part of another operation already, or was added to “macro” twice."
        ),
        (
            ChainError.alreadyUsed(operation: "load", chain: "load"), 1,
            "“load” cannot be continued or added as a step, because it is part of another operation."
        ),
        (ChainError.consumed(chain: "load"), 2, "part of a longer chain"),
        (ChainError.alreadyStarted(chain: "load"), 3, "had been started"),
        (ChainError.notAStep(operation: "load", chain: "macro"), 4, "no earlier step"),
        (
            ChainError.operationNotRun(job: "load", chain: "all"), 5,
            "“load” of “all” makes an operation, which would not run"
        ),
    ]

    private static let coordination: [Row] = [
        (
            CoordinationError.invalidBatchSize(type: "load", batchSize: -1), 1,
            "“load” asks for batches of -1 items. Set its batchSize to 1 or more."
        ),
        (
            CoordinationError.invalidLimit(type: "load", maxConcurrentOperationCount: 0), 2,
            "“load” allows 0 items at a time. Set its maxConcurrentOperationCount to 1 or more."
        ),
        (
            CoordinationError.alreadyStarted(operation: "load", coordinator: "Nightly"), 3,
            "The operation “load” was not run by “Nightly”, because it has been started before."
        ),
        (
            CoordinationError.givenTwice(operation: "load", coordinator: "Nightly"), 4,
            "The operation “load” was given to “Nightly” twice. It ran once: give each operation once."
        ),
        (
            CoordinationError.invalidRetryPolicy(type: "load", problem: "its maximumAttempts is 0"), 5,
            "“load” did not run, because of its retry policy: its maximumAttempts is 0."
        ),
        (
            CoordinationError.itemsAndBatches(type: "load"), 6,
            "“load” works item by item and by batches. Conform to one of these protocols only."
        ),
    ]

    private static func timedOut(_ holders: String...) -> ResourceError {
        .timedOut(operation: "load", resource: "disk", duration: .seconds(1), holders: holders)
    }

    private static let policies: [Row] = [
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
            "The operation “load” did not run, because the circuit breaker “server” is open, for another 2 s."
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

    @Test("Each error has a domain, a code and a sentence with the name of the operation") func conversions() {
        for (original, code, text) in Self.dataFlow + Self.coordination + Self.policies {
            let error = original as NSError
            #expect(error.domain == "OperationKit.\(type(of: original))" && error.code == code, "\(text)")
            let sentence = error.localizedDescription
            #expect(sentence.contains(text) && sentence.contains("“load”") && sentence.hasSuffix("."), "\(sentence)")
            #expect(original.errorDescription == sentence)
            #expect(error.userInfo[NSLocalizedDescriptionKey] as? String == sentence)
            let underlying = error.userInfo[NSUnderlyingErrorKey] as? NSError
            #expect((underlying?.code == CocoaError.fileNoSuchFile.rawValue) == text.contains("There is no file."))
            #expect((original as any Error).isCancellation == text.contains("was cancelled"))
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
