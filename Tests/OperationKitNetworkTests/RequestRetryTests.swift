import OperationKitTestSupport

@testable import OperationKitNetwork

@Suite("Requests that are tried again", .hangGuard, .stopsServers)
struct RequestRetryTests {
    private let queue = OperationQueue()

    @Test("The policy for HTTP tries again what may be repeated, and waits as long as the server asks")
    func retries() async throws {
        let server = try LoopbackServer { request in
            request.number < 3 ? [.response(503, headers: ["Retry-After": "0"])] : [.response(Data("at last".utf8))]
        }
        let retry = RetryOperation(.http, name: "page") { _ in DataTaskOperation() }
        #expect(try await queue.run(retry.with(input: URLRequest(url: server.url()))).text == "at last")

        let post = RetryOperation(.http, name: "post") { _ in DataTaskOperation() }
        let failing = try LoopbackServer { _ in [.response(503)] }
        var request = URLRequest(url: failing.url())
        request.httpMethod = "POST"
        await #expect(throws: HTTPError.self) { try await queue.run(post.with(input: request)) }
        #expect(failing.requests.count == 1)
    }

    @Test(
        "Whether a failure is tried again depends on the error and the method",
        arguments: [
            ("GET", 503, true), ("PUT", 429, true), ("POST", 503, false), ("GET", 404, false), ("get", 408, true),
            ("HEAD", 500, true), ("OPTIONS", 502, true), ("TRACE", 504, true), ("DELETE", 503, true),
            ("PATCH", 503, false), ("GET", 501, false),
        ])
    func retriedStatuses(_ method: String, _ status: Int, _ isRetried: Bool) throws {
        let url = try #require(URL(string: "http://example.com"))
        let response = try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: nil))
        let error = HTTPError(method: method, url: url, response: HTTPResponse(response))
        #expect(RetryPolicy.http.shouldRetry(error, 1) == isRetried)
        let broken = TransferError(method: method, url: url, code: .networkConnectionLost, message: "")
        #expect(RetryPolicy.http.shouldRetry(broken, 1) == !["POST", "PATCH"].contains(method))
    }

    @Test(
        "A date after which to come back is compared with the clock of the server, or with that of this machine if there is none",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:30 GMT", Duration.seconds(30)), ("Thu, 01 Jan 1970 02:00:00 GMT", .zero),
            ("today", .zero), (nil, .zero),
        ] as [(String?, Duration)])
    func serverClock(_ date: String?, _ delay: Duration) throws {
        let url = try #require(URL(string: "http://example.com"))
        var fields = ["Retry-After": "Thu, 01 Jan 1970 00:01:00 GMT"]
        fields["Date"] = date
        let response = HTTPURLResponse(url: url, statusCode: 503, httpVersion: nil, headerFields: fields)
        let error = HTTPError(method: "GET", url: url, response: HTTPResponse(try #require(response)))
        #expect(error.retryAfter == delay)
    }

    @Test("A timeout of the operation, which could have any method, is not tried again")
    func retriedTimeout() async throws {
        let never = Gate()
        let server = try LoopbackServer { _ in [.wait(never)] }
        let retry = RetryOperation(.http, name: "page") { _ in
            let operation = DataTaskOperation()
            operation.timeout = .milliseconds(50)
            return operation
        }
        await #expect(throws: OperationTimeoutError.self) {
            try await queue.run(retry.with(input: URLRequest(url: server.url())))
        }
        #expect(retry.attempts.count == 1)
    }

    @Test("A delay that a server asks for ends a retry if it would pass the whole time")
    func retryTooLate() async throws {
        let server = try LoopbackServer { _ in [.response(429, headers: ["Retry-After": "3600"])] }
        var policy = RetryPolicy.http
        policy.maximumTotalTime = .seconds(60)
        let retry = RetryOperation(policy, name: "page") { _ in DataTaskOperation() }
        let error = await #expect(throws: HTTPError.self) {
            try await queue.run(retry.with(input: URLRequest(url: server.url())))
        }
        #expect(error?.status == 429 && server.requests.count == 1)
    }
}
