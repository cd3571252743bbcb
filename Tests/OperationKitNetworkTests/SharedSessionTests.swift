import OperationKitTestSupport

@testable import OperationKitNetwork

/// What the one session of all requests does on its own.
@Suite("The session of all requests", .hangGuard, .stopsServers)
struct SharedSessionTests {
    private let queue = OperationQueue()

    // MARK: - Large bodies

    @Test(
        "A cancellation does not wait for what has come of a large answer, of which nothing more is read, and all of it is no success",
        arguments: [false, true])
    func cancelledWhileMuchComes(isComplete: Bool) async throws {
        let (occupied, full, cancelled, end) = (Gate(), Gate(), Gate(), Gate())
        let body = Data(count: 8 << 20)
        let length = body.count + (isComplete ? 1 : 2)
        let server = try LoopbackServer { request in
            if request.path == "/other" { return [.response(Data())] }
            let head = LoopbackServer.Step.text("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n1")
            return [head, .wait(occupied), .bytes(body)] + (isComplete ? [] : [.wait(end)])
        }
        let transfer = RecordedTransfer(server.url())
        RequestSession.shared.start(transfer)
        await eventually("nothing comes") { transfer.received.value > 0 }
        let other = RecordedTransfer(server.url("/other")) { session in
            occupied.open()
            while session.delegateQueue.operationCount < 20 { Thread.sleep(forTimeInterval: 0.001) }
            var count = 0
            while isComplete, exchange(&count, with: session.delegateQueue.operationCount) < count {
                Thread.sleep(forTimeInterval: 0.1)
            }
            full.open()
            while !cancelled.pass(within: .seconds(1)) {}
        }
        RequestSession.shared.start(other)
        await full.opened()
        RequestSession.shared.cancel(transfer)
        cancelled.open()
        await eventually("it does not end") { !transfer.outcomes.value.isEmpty }
        #expect((transfer.outcomes.value.first as? URLError)?.code == .cancelled && transfer.received.value == 1)
        end.open()
    }

    // MARK: - What ends meanwhile

    @Test("Other code that finishes a download which is about to start over ends it, and its destination is as it was")
    func finishedBeforeStartingOver() async throws {
        let folder = TemporaryFolder()
        let destination = folder.url.appendingPathComponent("file")
        let server = try LoopbackServer { request in
            if request.number == 1 {
                return [.text("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 100\r\n\r\nhalf"), .close]
            }
            return [request.path == "/other" ? .response(304) : .response(416)]
        }
        try Data("old".utf8).write(to: destination)
        await folder.breakOff(server)
        let operation = DownloadTaskOperation(to: destination)
        let file = try PartialFile(for: destination, of: server.url())
        let transfer = InterruptedTransfer(FileTransfer(URLRequest(url: server.url()), for: operation, file)) {
            operation.finish(withError: TestError.first)
        }
        RequestSession.shared.start(transfer)
        await transfer.completed.opened()
        // A transfer that goes on keeps the destination.
        _ = try await queue.run(DownloadTaskOperation(server.url("/other"), to: destination))
        #expect(try String(contentsOf: destination, encoding: .utf8) == "old" && server.requests.count == 3)
    }

    #if os(Linux)
    @Test("A redirection that waits for other answers longer than its request may be idle ends that, not the program")
    func redirectionWaits() async {
        await #expect(processExitsWith: .success) {
            let (asked, occupied) = (Gate(), Gate())
            let server = try LoopbackServer { request in
                if request.path == "/other" { return [.response()] }
                asked.open()
                return [.wait(occupied), .response(302, headers: ["Location": "/other"])]
            }
            let redirected = RecordedTransfer(server.url(), idleLimit: 2)
            RequestSession.shared.start(redirected)
            await asked.opened()
            let other = RecordedTransfer(server.url("/other")) { _ in
                occupied.open()
                // Set when the time is over. On a busy machine that may be before the redirection.
                for _ in 0..<1_000 where redirected.task.value?.response == nil { Thread.sleep(forTimeInterval: 0.01) }
            }
            RequestSession.shared.start(other)
            for transfer in [redirected, other] {
                await eventually("it does not end") { !transfer.outcomes.value.isEmpty }
            }
            let isTimedOut = (redirected.outcomes.value.first as? URLError)?.code == .timedOut
            exit(isTimedOut && other.outcomes.value.count == 1 ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif

    #if os(Linux)
    @Test("No request waits for a connection inside Foundation, where its idle time would pass")
    func connections() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        let limit = Shared<Int?>(nil)
        let transfer = RecordedTransfer(server.url()) { session in
            limit.value = session.configuration.httpMaximumConnectionsPerHost
        }
        RequestSession.shared.start(transfer)
        await eventually("it does not end") { !transfer.outcomes.value.isEmpty }
        // None, as curl has it.
        #expect(limit.value == 0)
    }
    #endif

    // MARK: - Compressed bodies

    @Test(
        "The progress of a body that is sent compressed does not end before it",
        arguments: ["gzip", "identity", nil])
    func compressed(_ encoding: String?) throws {
        let operation = DataTaskOperation()
        let url = try #require(URL(string: "https://example.com/"))
        let transfer = BodyTransfer(URLRequest(url: url), for: operation)
        var fields = ["Content-Length": "100"]
        fields["Content-Encoding"] = encoding
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        #expect(transfer.received(response))
        for _ in 0..<3 { #expect(transfer.received(Data(count: 25))) }
        #expect(operation.progress.fractionCompleted == (encoding == "gzip" ? 0 : 0.75))
        // As much as was not decoded yet.
        #expect(transfer.received(Data(count: 25)))
        #expect(operation.progress.fractionCompleted == (encoding == "gzip" ? 0 : 1))
    }

    // MARK: - Cookies

    @Test("A cookie that a server sets is in its answer, and goes along with no other request")
    func cookies() async throws {
        let server = try LoopbackServer { request in
            let fields = ["Set-Cookie": "session=1; Path=/"]
            guard request.path == "/moved" else { return [.response(headers: fields)] }
            return [.response(302, headers: fields.merging(["Location": "/there"]) { $1 })]
        }
        for path in ["/set", "/moved", "/get"] {
            let output = try await queue.run(DataTaskOperation(server.url(path)))
            #expect(output.response.value(forHTTPHeaderField: "Set-Cookie") == "session=1; Path=/")
        }
        #expect(server.requests.map { $0.headers["cookie"] } == [nil, nil, nil, nil])
    }

    @Test("A request keeps a cookie of its own, also where it is redirected on the same server")
    func ownCookie() async throws {
        let server = try LoopbackServer { request in
            let fields = ["Set-Cookie": "session=1; Path=/", "Location": "/there"]
            return [.response(request.path == "/moved" ? 302 : 200, headers: fields)]
        }
        for path in ["/there", "/moved"] {
            var request = URLRequest(url: server.url(path))
            request.setValue("mine=1", forHTTPHeaderField: "Cookie")
            _ = try await queue.run(DataTaskOperation(request))
        }
        #expect(server.requests.map { $0.headers["cookie"] } == ["mine=1", "mine=1", "mine=1"])
    }
}

/// A request whose answer is only counted.
private final class RecordedTransfer: TransferHandler {
    let received = Shared(0)
    let outcomes = Shared<[(any Error)?]>([])
    let task = Shared<URLSessionTask?>(nil)
    private let url: URL
    private let idleLimit: TimeInterval
    private let willBegin: @Sendable (URLSession) -> Void

    init(_ url: URL, idleLimit: TimeInterval = 60, willBegin: @escaping @Sendable (URLSession) -> Void = { _ in }) {
        (self.url, self.idleLimit) = (url, idleLimit)
        self.willBegin = willBegin
    }

    func makeTask(in session: URLSession, redirectedTo redirection: URLRequest?) -> URLSessionTask {
        willBegin(session)
        var request = URLRequest(url: url)
        // One that is given at the initialization counts for nothing on Linux.
        request.timeoutInterval = idleLimit
        let task = session.dataTask(with: request)
        self.task.value = task
        return task
    }

    func received(_ response: URLResponse) -> Bool { true }

    func received(_ data: Data) -> Bool {
        received.change { $0 += data.count }
        return true
    }

    func sent(_ count: Int64, of total: Int64) {}

    func completed(with error: (any Error)?) { outcomes.change { $0.append(error) } }
}

/// A transfer that is interrupted while its answer begins.
private final class InterruptedTransfer: TransferHandler {
    let completed = Gate()
    private let transfer: any TransferHandler
    private let interruption: @Sendable () -> Void

    init(_ transfer: any TransferHandler, by interruption: @escaping @Sendable () -> Void) {
        self.transfer = transfer
        self.interruption = interruption
    }

    func makeTask(in session: URLSession, redirectedTo redirection: URLRequest?) -> URLSessionTask {
        transfer.makeTask(in: session, redirectedTo: redirection)
    }

    func received(_ response: URLResponse) -> Bool {
        defer {
            interruption()
            RequestSession.shared.cancel(self)
        }
        return transfer.received(response)
    }

    func received(_ data: Data) -> Bool { transfer.received(data) }

    func sent(_ count: Int64, of total: Int64) {}

    func completed(with error: (any Error)?) {
        transfer.completed(with: error)
        completed.open()
    }
}
