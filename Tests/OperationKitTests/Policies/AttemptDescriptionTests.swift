import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Descriptions of attempts and runs", .hangGuard) struct AttemptDescriptionTests {
    private let clock = ManualClock()

    private func firstLine(_ operation: AsyncOperation) -> Substring? {
        operation.debugDescription.split(separator: "\n").first
    }

    /// What the operation adds to its line, also before it has begun.
    private func summary(of operation: AsyncOperation) -> [String]? {
        operation.children?.snapshot(atMost: 10)?.summary
    }

    @Test("Before the start nothing is said about attempts or runs") func beforeTheStart() {
        let hedged = HedgedOperation(after: .seconds(1)) { _ in AsyncBlockOperation { $0() } }
        let repetition = RepeatOperation(every: .seconds(1)) { _ in AsyncBlockOperation { $0() } }
        let retry = RetryOperation { _ in AsyncBlockOperation { $0() } }
        for operation in [hedged, repetition, retry] { #expect(summary(of: operation) == []) }
        for operation in [hedged, repetition, retry] {
            operation.cancel()
            operation.start()
        }
    }

    @Test("Of a hedged operation the last attempt that has begun is described, and when the next one begins")
    func hedged() async {
        let attempts = Shared<[ScriptedOperation]>([])
        let hedged = HedgedOperation(after: .seconds(2), maximumAttempts: 2, name: "page") { number in
            let attempt = ScriptedOperation.idle("\(number)")
            attempts.change { $0.append(attempt) }
            return attempt
        }
        hedged.clock = clock
        hedged.start()
        await clock.sleepers()
        #expect(summary(of: hedged) == ["attempt 1 of 2", "attempt 2 of 2 begins in 2.0 s"])
        clock.advance(by: .seconds(2))
        await eventually("the second attempt has not begun") {
            attempts.value.count == 2 && attempts.value[1].isExecuting
        }
        #expect(summary(of: hedged) == ["attempt 2 of 2"])
        for attempt in attempts.value { attempt.finish() }
        await #expect(throws: Never.self) { try await hedged.finished() }
    }

    @Test("Where the number of attempts has no limit, none is named") func unlimited() async {
        let policy = RetryPolicy(maximumAttempts: .max, backoff: .constant(.seconds(3)), jitter: .none)
        let retry = RetryOperation(policy, name: "poll") { _ in AsyncBlockOperation { $0(TestError.first) } }
        retry.clock = clock
        retry.start()
        await clock.sleepers()
        await eventually("\(retry.debugDescription)") { summary(of: retry) == ["attempt 2 begins in 3.0 s"] }
        #expect(firstLine(retry)?.contains("attempt 2 begins in 3.0 s") == true)
        retry.cancel()
        await #expect(throws: CancellationError.self) { try await retry.finished() }
    }

    @Test("An operation without an input makes no attempt, and ends with an error") func missingInput() async {
        let hedged = HedgedOperation(after: .seconds(1), name: "page") { _ in IOBlockOperation<Int, Int> { $0 } }
        let repetition = RepeatOperation(every: .seconds(1), name: "poll") { _ in IOBlockOperation<Int, Int> { $0 } }
        for operation in [hedged, repetition] {
            operation.start()
            await #expect(throws: IOOperationError.missingInput(operation: operation.displayName)) {
                try await operation.value
            }
        }
        #expect(hedged.attemptCount == 0 && repetition.attemptCount == 0)
    }
}
