#if os(macOS) || os(Linux)
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The crosses of the table: what the callers never do.
@Suite("Lifecycle, impossible events", .hangGuard) struct LifecycleTrapTests {
    @Test(
        "An event that is impossible in the state of a life traps, and the trap names both",
        arguments: [
            "becameExecuting", "started becameExecuting becameExecuting",
            "started becameExecuting gatesPassed gatesPassed",
            "started gateClosed", "started becameExecuting gateClosed gatesPassed",
            "mainReturned", "started becameExecuting mainReturned",
            "started becameExecuting gatesPassed mainReturned mainReturned", "drained",
            "started becameExecuting gatesPassed drained drained", "started becameExecuting ended",
            "started becameExecuting succeeded ended ended", "marked",
        ]
    )
    func trap(events: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [events] in
            let events = events.split(separator: " ").compactMap { LifecycleEvent(rawValue: String($0)) }
            _ = Lifecycle.after(events, events.last == .drained ? .afterChildren : .immediately)
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("OperationKit: event ") && message.contains(" is impossible in state "))
        #endif
    }
}
#endif
