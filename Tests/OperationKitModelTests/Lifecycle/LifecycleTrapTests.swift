#if os(macOS) || os(Linux)
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The crosses of the table: what the callers never do.
@Suite("Lifecycle, impossible events", .hangGuard) struct LifecycleTrapTests {
    @Test func becomingExecutingWithoutAStartTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.becameExecuting], .immediately)
        }
    }

    @Test func becomingExecutingTwiceTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .becameExecuting], .immediately)
        }
    }

    @Test func returningFromMainTwiceTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .mainReturned, .mainReturned], .immediately)
        }
    }

    @Test func drainingBeforeTheStartTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.drained], .afterChildren)
        }
    }

    @Test func drainingTwiceTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .drained, .drained], .afterChildren)
        }
    }

    @Test func endingWithoutAnOutcomeTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .ended], .immediately)
        }
    }

    @Test func endingTwiceTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .succeeded, .ended, .ended], .immediately)
        }
    }

    @Test func markingWithoutACancellationTraps() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.marked], .immediately)
        }
    }

    @Test func aTrapNamesTheEventAndTheState() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Lifecycle.after([.mainReturned], .immediately)
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("event mainReturned is impossible in state pending"))
        #endif
    }
}
#endif
