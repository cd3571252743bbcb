import OperationKitTestSupport

@Suite("Public errors") struct ErrorTests {
    private static let cause = CocoaError(.fileNoSuchFile, userInfo: [NSLocalizedDescriptionKey: "There is no file."])

    private typealias Row = (error: any LocalizedError & CustomNSError, code: Int, text: String)

    private static let dataFlow: [Row] = [
        (IOOperationError.missingInput(operation: "load"), 1, "was started without an input"),
        (IOOperationError.missingOutput(operation: "load"), 2, "finished without an output"),
        (OperationQueueError.cannotBeAdded(operation: "load"), 1, "cannot be added"),
        (OperationQueueError.givenTwice(operation: "load"), 2, "was given twice, so nothing was added."),
        (OperationQueueError.invalidLimit(queue: "load", limit: -2), 3, "-2"),
        (dependencyFailed(CancellationError()), 1, "did not run, because “find” was cancelled."),
        (dependencyFailed(cause), 1, "did not run, because “find” failed: There is no file."),
        (DependencyError.dependencyUnfinished(operation: "load", dependency: "find"), 2, "“find” had not finished."),
        (ChainError.alreadyUsed(operation: "load", chain: "macro"), 1, "“macro” did not run, because “load” is"),
        (ChainError.alreadyUsed(operation: "load", chain: "load"), 1, "“load” cannot be continued or added as a step"),
        (ChainError.consumed(chain: "load"), 2, "part of a longer chain"),
        (ChainError.alreadyStarted(chain: "load"), 3, "had been started"),
        (ChainError.notAStep(operation: "load", chain: "macro"), 4, "no earlier step"),
        (ChainError.operationNotRun(job: "load", chain: "all"), 5, "“load” of “all” makes an operation"),
        (CompoundAdditionError.compoundFinished(operation: "load", compound: "parent"), 1, "“parent”"),
        (
            CompoundAdditionError.alreadyAdded(operation: "load", compound: "parent"), 2,
            "The operation “load” was not added to “parent”: it is a child already, contains “parent”, "
                + "or may wait for “parent”. Add a new operation, once, to one compound."
        ),
        (SuboperationError(name: "load", index: 3, error: cause), 1, "“load” failed: There is no file."),
    ]

    private static func dependencyFailed(_ error: any Error) -> DependencyError {
        .dependencyFailed(operation: "load", dependency: "find", error: error)
    }

    private static let coordination: [Row] = [
        (CoordinationError.invalidBatchSize(type: "load", batchSize: -1), 1, "asks for batches of -1 items."),
        (CoordinationError.invalidLimit(type: "load", maxConcurrentOperationCount: 0), 2, "allows 0 at a time."),
        (CoordinationError.alreadyStarted(operation: "load", coordinator: "Nightly"), 3, "was not run by “Nightly”"),
        (CoordinationError.givenTwice(operation: "load", coordinator: "Nightly"), 4, "was given to “Nightly” twice."),
        (CoordinationError.invalidRetryPolicy(type: "load", problem: "its limit is 0"), 5, "policy: its limit is 0."),
        (CoordinationError.itemsAndBatches(type: "load"), 6, "works item by item and by batches."),
    ]

    private static func tooManyWaiting(_ maximum: Int) -> ResourceError {
        .tooManyWaiting(operation: "load", resource: "disk", maximum: maximum)
    }

    private static func timedOut(_ holders: String...) -> ResourceError {
        .timedOut(operation: "load", resource: "disk", duration: .seconds(1), holders: holders)
    }

    private static func circuit(_ time: Duration?) -> CircuitOpenError {
        CircuitOpenError(operation: "load", circuit: "server", retryAfter: time)
    }

    private static func exhausted(_ attempts: Int) -> RetryError {
        .budgetExhausted(operation: "load", attempts: attempts, error: cause)
    }

    private static func condition(_ error: any Error) -> ConditionError {
        .failed(operation: "load", condition: "signed in", error: error)
    }

    private static func prerequisite(_ error: any Error) -> ConditionError {
        .prerequisiteFailed(operation: "load", condition: "signed in", prerequisite: "sign in", error: error)
    }

    private static let policies: [Row] = [
        (OperationTimeoutError(operation: "load", timeout: .seconds(5)), 1, "longer than its timeout of 5.0 seconds."),
        (condition(cause), 1, "because its condition “signed in” failed: There is no file."),
        (condition(CancellationError()), 1, "did not run, because its condition “signed in” was cancelled."),
        (prerequisite(cause), 2, "“sign in”, which its condition “signed in” needs, failed: There is no file."),
        (ConditionError.satisfied(operation: "load", condition: "offline"), 3, "“offline” of the operation “load” is"),
        (RetryError.invalidPolicy(operation: "load", problem: "its limit is 0"), 1, "its policy: its limit is 0."),
        (exhausted(2), 2, "2 attempts, because the retry budget is exhausted. The last one failed: There is no file."),
        (exhausted(1), 2, "1 attempt, because the retry budget is exhausted. The last one failed: There is no file."),
        (RetryError.operationReused(operation: "load", attempt: 2), 3, "Call 2 of the closure of “load” returned"),
        (circuit(.seconds(2)), 1, "the circuit breaker “server” is open, for another 2 s."),
        (circuit(nil), 1, "the circuit breaker “server” lets no other operation through until those on trial have"),
        (tooManyWaiting(0), 1, "because “disk” was not available, and no operation may wait for it."),
        (tooManyWaiting(1), 1, "because 1 operation waits for “disk” already, and no more may."),
        (tooManyWaiting(5), 1, "because 5 operations wait for “disk” already, and no more may."),
        (ResourceError.heldByComposite(operation: "load", resource: "disk", composite: "sync"), 2, "“sync” around it"),
        (timedOut("copy", "backup", "move"), 3, "1.0 seconds: it is held by “copy”, “backup” and “move”."),
        (timedOut("copy"), 3, "1.0 seconds: it is held by “copy”."),
        (timedOut(), 3, "because “disk” was not available within 1.0 seconds."),
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

    @Test("Errors of policies that wrap each other without end have a text and a conversion") func nesting() {
        let error = (0..<2_000).reduce(Self.cause as any Error) { error, _ in
            ConditionError.failed(operation: "a", condition: "b", error: error)
        }
        #expect(error.localizedDescription.count < 1_000)
        #expect((error as NSError).userInfo[NSUnderlyingErrorKey] != nil && !error.isCancellation)
    }
}
