import Foundation
import OperationKit
import Testing

/// What is promised of every public error.
@Suite("Coordination errors") struct CoordinationErrorTests {
    private static let errors: [CoordinationError] = [
        .invalidBatchSize(type: "Sync", batchSize: -1),
        .invalidLimit(type: "Sync", maxConcurrentOperationCount: 0),
        .alreadyStarted(operation: "Backup", coordinator: "Nightly"),
        .givenTwice(operation: "Backup", coordinator: "Nightly"),
        .invalidRetryPolicy(type: "Sync", problem: "its maximumAttempts is 0"),
        .itemsAndBatches(type: "Sync"),
    ]

    @Test("Errors of coordination have stable codes, and sentences with the names") func descriptions() {
        let errors = Self.errors.map { $0 as NSError }
        #expect(errors.allSatisfy { $0.domain == "OperationKit.CoordinationError" })
        #expect(errors.map(\.code) == [1, 2, 3, 4, 5, 6])
        #expect(
            errors.map(\.localizedDescription) == [
                "“Sync” asks for batches of -1 items. Set its batchSize to 1 or more.",
                "“Sync” allows 0 items at a time. Set its maxConcurrentOperationCount to 1 or more.",
                "The operation “Backup” was not run by “Nightly”, because it has been started before. "
                    + "Create a new one for each run.",
                "The operation “Backup” was given to “Nightly” twice. It ran once: give each operation once.",
                "“Sync” did not run, because of its retry policy: its maximumAttempts is 0.",
                "“Sync” works item by item and by batches. Conform to one of these protocols only.",
            ])
    }
}
