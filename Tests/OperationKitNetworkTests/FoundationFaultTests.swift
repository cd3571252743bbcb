#if os(Linux)
import Foundation
import OperationKit
import OperationKitNetwork
import OperationKitTestSupport
import Testing

@Suite("Faults of Foundation that requests live with", .hangGuard)
struct FoundationFaultTests {
    @Test(
        "A server that closes inside the header ends the program: remove the warning from the documentation once it does not"
    )
    func closedInHeader() async {
        await #expect(processExitsWith: .failure) {
            let server = try LoopbackServer { _ in [.text("HTTP/1.1 200 OK\r\n"), .close] }
            _ = try? await OperationQueue().run(DataTaskOperation(server.url()))
            // Ended without a trap: the fault is mended.
            exit(EXIT_SUCCESS)
        }
    }
}
#endif
