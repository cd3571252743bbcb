#if os(Linux)
import OperationKitNetwork
import OperationKitTestSupport

@Suite("Faults of Foundation that requests live with", .hangGuard, .stopsServers)
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

    @Test("A server that announces almost 2^63 bytes ends the program: remove the warning once it does not")
    func hugeLength() async {
        await #expect(processExitsWith: .failure) {
            let server = try LoopbackServer { _ in
                // A `Double` of it is 2^63.
                [.text("HTTP/1.1 200 OK\r\nContent-Length: \(Int64.max - 500)\r\n\r\nhello"), .close]
            }
            _ = try? await OperationQueue().run(DataTaskOperation(server.url()))
            exit(EXIT_SUCCESS)
        }
    }

    @Test("An IPv6 address is no URL for it: remove the warning from the documentation once it is one")
    func addressInBrackets() async throws {
        let url = try #require(URL(string: "http://[::1]:9/"))
        let error = await #expect(throws: TransferError.self) {
            try await OperationQueue().run(DataTaskOperation(url))
        }
        #expect(error?.code == .badURL)
    }

    @Test("A server that announces far more than comes, but less than that, is an error")
    func longLength() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: \(Int64.max / 2)\r\n\r\nhello"), .close]
        }
        await #expect(throws: TransferError.self) { try await OperationQueue().run(DataTaskOperation(server.url())) }
    }
}
#endif
