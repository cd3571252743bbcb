#if os(Linux)
import OperationKitNetwork
import OperationKitProcess
import OperationKitTestSupport

@Suite("Requests over TLS", .hangGuard, .stopsServers)
struct SecureRequestTests {
    private let queue = OperationQueue()

    enum Fault: CaseIterable, Sendable {
        case plainText, closed, reset

        var steps: [LoopbackServer.Step] {
            switch self {
            case .plainText: [.text("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")]
            case .closed: [.close]
            case .reset: [.reset]
            }
        }
    }

    private func secure(_ server: LoopbackServer) -> URL { URL(string: "https://127.0.0.1:\(server.port)/x")! }

    @Test("A connection that does not become secure is an error that names the request", arguments: Fault.allCases)
    func handshake(_ fault: Fault) async throws {
        let server = try LoopbackServer(reading: .nothing) { _ in fault.steps }
        let error = await #expect(throws: TransferError.self) {
            try await queue.run(DataTaskOperation(secure(server)))
        }
        #expect(
            error?.localizedDescription.hasPrefix("“GET https://127.0.0.1:\(server.port)/x” failed: ")
                == true)
        #expect(error?.code == .secureConnectionFailed || fault != .plainText, "\(error?.code.rawValue as Any)")
        #expect(error?.isTransient == (fault != .plainText), "\(error?.code.rawValue as Any)")
    }

    @Test("Cancelling ends a request whose connection is not secure yet")
    func cancelled() async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer(reading: .nothing) { _ in
            reached.open()
            return [.wait(never)]
        }
        let operation = DataTaskOperation(secure(server))
        queue.addOperation(operation)
        await reached.opened()
        operation.cancel()
        await #expect(throws: CancellationError.self) { try await operation.finished() }
    }

    @Test(
        "A certificate that the system does not trust is an error, and is not tried again",
        .enabled(if: SecureServer.exists, "There is no openssl on this machine."))
    func untrusted() async throws {
        let server = try await SecureServer()
        let retry = RetryOperation(.http, name: "retry") { _ in DataTaskOperation() }
        let request = retry.with(input: URLRequest(url: server.url))
        let error = await #expect(throws: TransferError.self) { try await queue.run(request) }
        #expect(error?.code == .serverCertificateUntrusted)
        #expect(error?.localizedDescription.contains("self-signed certificate") == true)
        #expect(retry.attempts.count == 1)
        await server.stop()
    }
}

/// A server of OpenSSL, whose certificate it has signed itself.
private struct SecureServer {
    /// Whether this machine has the tool.
    static let exists = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

    let url: URL
    private let folder = TemporaryFolder()
    private let process: ProcessOperation

    init() async throws {
        let certificate = folder.url.appendingPathComponent("certificate.pem")
        let key = folder.url.appendingPathComponent("key.pem")
        let names = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
        let arguments = "req -x509 -newkey rsa:2048 -nodes -days 1 \(names)".split(separator: " ").map(String.init)
        _ = try await OperationQueue().run(
            ProcessOperation("openssl", arguments + ["-keyout", key.path, "-out", certificate.path]))
        process = ProcessOperation(
            "openssl",
            ["s_server", "-accept", "127.0.0.1:0", "-cert", certificate.path, "-key", key.path, "-www"])
        let (ports, port) = AsyncStream.makeStream(of: String.self)
        process.standardOutput = .lines { line in
            if line.hasPrefix("ACCEPT") { port.yield(String(line.split(separator: ":").last ?? "")) }
        }
        OperationQueue().addOperation(process)
        var iterator = ports.makeAsyncIterator()
        url = URL(string: "https://127.0.0.1:\(await iterator.next() ?? "")/")!
    }

    func stop() async {
        process.cancel()
        try? await process.finished()
    }
}
#endif
