#if os(macOS) || os(Linux)
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The crosses of the table: what the callers never do.
@Suite("Lifecycle, impossible events", .hangGuard) struct LifecycleTrapTests {
    @Test("Executing without a start traps") func executingUnstarted() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.becameExecuting], .immediately)
        }
    }

    @Test("Executing twice traps") func executingTwice() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .becameExecuting], .immediately)
        }
    }

    @Test("Preparing twice traps") func preparingTwice() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .prepared, .prepared], .immediately)
        }
    }

    @Test("Waiting before the preparations traps") func waitingUnprepared() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .preparationSuspended], .immediately)
        }
    }

    @Test("Calling `main()` while a preparation takes time traps") func preparedWhileWaiting() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .preparationSuspended, .prepared], .immediately)
        }
    }

    @Test("Returning from `main()` while preparing traps") func returningUnprepared() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .mainReturned], .immediately)
        }
    }

    @Test("Returning from `main()` twice traps") func returningTwice() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .prepared, .mainReturned, .mainReturned], .immediately)
        }
    }

    @Test("An end of the children before the start traps") func drainingUnstarted() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.drained], .afterChildren)
        }
    }

    @Test("A second end of the children traps") func drainingTwice() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .prepared, .drained, .drained], .afterChildren)
        }
    }

    @Test("Ending without an outcome traps") func endingWithoutOutcome() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .ended], .immediately)
        }
    }

    @Test("Ending twice traps") func endingTwice() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.started, .becameExecuting, .succeeded, .ended, .ended], .immediately)
        }
    }

    @Test("Marking a life as cancelled without a cancellation traps") func markingUncancelled() async {
        await #expect(processExitsWith: .failure) {
            _ = Lifecycle.after([.marked], .immediately)
        }
    }

    @Test("A trap names the event and the state") func message() async throws {
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
