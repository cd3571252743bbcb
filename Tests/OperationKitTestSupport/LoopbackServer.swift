import Foundation
package import Testing

extension Data {
    /// What is sent or loaded.
    package static var sample: Data { Data(sampleBytes) }
    // An array, because a leak is reported of a `Data` that only a global variable has.
    private static let sampleBytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
}

/// An HTTP server on the loopback interface that answers as a test wants, also in ways that no server should.
///
/// Each connection has a thread of its own, on which the closure is called.
package final class LoopbackServer: @unchecked Sendable {
    /// What a client has sent.
    package struct Request: Sendable {
        package let method: String
        package let path: String
        /// By their names in lower case.
        package let headers: [String: String]
        package let body: Data
        /// Which request it is of all that the server has received, from 1.
        package let number: Int
        /// Whether others have come on the same connection.
        package let isOnUsedConnection: Bool

        /// The first byte of the range that it asks for.
        package var firstByte: Int? { headers["range"].flatMap { Int($0.dropFirst(6).prefix { $0 != "-" }) } }
    }

    /// A part of an answer.
    package enum Step: Sendable {
        case bytes(Data)
        /// The next part is sent when the gate is open.
        case wait(Gate)
        /// The next part is sent when this holds, which is asked again and again.
        case until(@Sendable () -> Bool)
        /// What the client still sends is read, up to the end of the connection.
        case drain
        /// The connection is closed.
        case close
        /// The connection is reset.
        case reset

        package static func text(_ text: String) -> Step { .bytes(Data(text.utf8)) }

        /// A whole answer with status 200.
        package static func response(_ body: Data) -> Step { response(200, body) }

        /// A whole answer.
        package static func response(_ status: Int = 200, headers: [String: String] = [:], _ body: Data = Data())
            -> Step
        {
            var head = "HTTP/1.1 \(status) Reason\r\nContent-Length: \(body.count)\r\n"
            for (name, value) in headers { head += "\(name): \(value)\r\n" }
            return .bytes(Data((head + "\r\n").utf8) + body)
        }
    }

    package let port: UInt16
    private let socket: Int32
    private let reading: Reading
    private let answer: @Sendable (Request) -> [Step]
    private let lock = NSLock()
    private var received: [Request] = []
    private var connections: Set<Int32> = []
    private var isStopped = false

    /// How much a server reads before it answers.
    package enum Reading: Sendable { case requests, heads, nothing }

    /// Starts a server on a free port. One that does not read whole requests answers once on each connection.
    package init(reading: Reading = .requests, _ answer: @escaping @Sendable (Request) -> [Step]) throws {
        self.reading = reading
        self.answer = answer
        socket = Foundation.socket(AF_INET, Int32(Self.stream), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (socket, size) = (socket, length)
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(socket, pointer, size) == 0 && listen(socket, 1_024) == 0
                    && getsockname(socket, pointer, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = UInt16(bigEndian: address.sin_port)
        let thread = Thread { [self] in accept() }
        thread.stackSize = 1 << 18
        thread.start()
        StopsServers.started?.change { $0.append(self) }
    }

    #if canImport(Darwin)
    private static let stream = SOCK_STREAM
    private static let noSignal: Int32 = 0
    #else
    private static let stream = SOCK_STREAM.rawValue
    private static let noSignal = Int32(MSG_NOSIGNAL)
    #endif

    package func url(_ path: String = "/") -> URL { URL(string: "http://127.0.0.1:\(port)\(path)")! }

    /// The requests that have come so far.
    package var requests: [Request] { lock.withLock { received } }

    private var hasStopped: Bool { lock.withLock { isStopped } }

    /// Closes all connections, whatever their answers wait for.
    package func stop() {
        // With the lock, with which they are closed: the number of one that was closed may be that of another server's.
        lock.withLock {
            if isStopped { return }
            isStopped = true
            for connection in connections { shutdown(connection, Int32(SHUT_RDWR)) }
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    private func accept() {
        while true {
            let connection = Foundation.accept(socket, nil, nil)
            let isOver = lock.withLock {
                if connection >= 0, !isStopped { connections.insert(connection) }
                return isStopped
            }
            if isOver {
                if connection >= 0 { close(connection) }
                break
            }
            guard connection >= 0 else { continue }
            let thread = Thread { [self] in serve(connection) }
            thread.stackSize = 1 << 18
            thread.start()
        }
        close(socket)
    }

    private func serve(_ connection: Int32) {
        var buffer = Data()
        var isUsed = false
        requests: while let request = readRequest(connection, &buffer, isUsed: isUsed) {
            isUsed = true
            for step in answer(request) {
                switch step {
                case .bytes(let data): if !send(data, to: connection) { break requests }
                case .wait(let gate): while !hasStopped, !gate.pass(within: .milliseconds(20)) {}
                case .until(let condition): while !hasStopped, !condition() { Thread.sleep(forTimeInterval: 0.001) }
                case .drain:
                    var part = [UInt8](repeating: 0, count: 1 << 16)
                    while unsafe recv(connection, &part, part.count, 0) > 0 {}
                case .close: break requests
                case .reset:
                    var linger = linger(l_onoff: 1, l_linger: 0)
                    _ = unsafe setsockopt(
                        connection, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
                    break requests
                }
            }
            if reading != .requests { break }
        }
        lock.withLock {
            connections.remove(connection)
            close(connection)
        }
    }

    private func send(_ data: Data, to connection: Int32) -> Bool {
        unsafe data.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = unsafe Foundation.send(
                    connection, bytes.baseAddress! + sent, bytes.count - sent, Self.noSignal)
                if count <= 0 { return false }
                sent += count
            }
            return true
        }
    }

    private func readRequest(_ connection: Int32, _ buffer: inout Data, isUsed: Bool) -> Request? {
        func more() -> Bool {
            var part = [UInt8](repeating: 0, count: 1 << 16)
            let count = unsafe recv(connection, &part, part.count, 0)
            if count > 0 { buffer.append(contentsOf: part[..<count]) }
            return count > 0
        }
        if reading == .nothing {
            return Request(method: "", path: "", headers: [:], body: Data(), number: 0, isOnUsedConnection: false)
        }
        let separator = Data("\r\n\r\n".utf8)
        while buffer.range(of: separator) == nil { if !more() { return nil } }
        guard let end = buffer.range(of: separator) else { return nil }
        let lines = String(decoding: buffer[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let first = lines[0].split(separator: " ")
        guard first.count == 3 else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces)
        }
        buffer = Data(buffer[end.upperBound...])
        if headers["expect"] != nil { _ = send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8), to: connection) }
        let length = reading == .requests ? headers["content-length"].flatMap(Int.init) ?? 0 : 0
        func take(_ count: Int) -> Data? {
            while buffer.count < count { if !more() { return nil } }
            defer { buffer = Data(buffer.dropFirst(count)) }
            return Data(buffer.prefix(count))
        }
        guard var body = take(length) else { return nil }
        while reading == .requests, headers["transfer-encoding"] == "chunked" {
            let lineBreak = Data("\r\n".utf8)
            while buffer.range(of: lineBreak) == nil { if !more() { return nil } }
            guard let end = buffer.range(of: lineBreak), let line = take(end.upperBound),
                let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16),
                let chunk = take(size + 2)
            else { return nil }
            body += chunk.dropLast(2)
            if size == 0 { break }
        }
        return lock.withLock {
            let request = Request(
                method: String(first[0]), path: String(first[1]), headers: headers, body: body,
                number: received.count + 1, isOnUsedConnection: isUsed)
            received.append(request)
            return request
        }
    }
}

/// Stops the servers that a test has started, whatever their answers wait for, when the test is over.
package struct StopsServers: SuiteTrait, TestTrait, TestScoping {
    @TaskLocal fileprivate static var started: Shared<[LoopbackServer]>?

    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let started = Shared<[LoopbackServer]>([])
        defer { for server in started.value { server.stop() } }
        try await Self.$started.withValue(started, operation: function)
    }
}

extension Trait where Self == StopsServers {
    /// Servers that a test starts are stopped when it is over.
    package static var stopsServers: Self { StopsServers() }
}
