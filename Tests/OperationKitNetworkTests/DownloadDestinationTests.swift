import OperationKitTestSupport

@testable import OperationKitNetwork

/// Where a download is put.
@Suite("Destinations of downloads", .hangGuard, .stopsServers)
struct DownloadDestinationTests {
    private let queue = OperationQueue()
    private let folder = TemporaryFolder()
    private let content = Data(repeating: 7, count: 100_000)

    private var destination: URL { folder.destination }

    /// Sends one half of the content before a gate is open, and the other one after.
    private func server(waitingFor gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { [content] _ in
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"
            return [.text(head), .bytes(content.prefix(50_000)), .wait(gate), .bytes(content.dropFirst(50_000))]
        }
    }

    @Test("An empty file is a file")
    func empty() async throws {
        let server = try LoopbackServer { _ in [.response()] }
        try await folder.download(from: server)
        #expect(try Data(contentsOf: destination).isEmpty)
    }

    @Test("What a program writes to a standard output that was closed gets into no download") func closedOutput() async
    {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryFolder()
            // A copy gets the lowest number, too.
            close(STDIN_FILENO)
            close(STDOUT_FILENO)
            let part = try PartialFile(for: folder.url.appendingPathComponent("file"), of: nil)
            // Other threads open files, too.
            let file = try? FileManager.default.attributesOfItem(atPath: folder.url.path + "/file.partial")
            let number = (file?[.systemFileNumber] as? NSNumber)?.uint64Value
            let isStream = withExtendedLifetime(part) {
                [STDIN_FILENO, STDOUT_FILENO].contains { stream in
                    var status = stat()
                    return unsafe fstat(stream, &status) == 0 && UInt64(status.st_ino) == number
                }
            }
            exit(number == nil || isStream ? EXIT_FAILURE : EXIT_SUCCESS)
        }
    }

    @Test(
        "A second operation with the same destination ends with an error, and the destination is free after the first one",
        arguments: [false, true])
    func destinationInUse(_ isLink: Bool) async throws {
        var other = destination
        if isLink {
            let link = folder.url.appendingPathComponent("link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.url)
            other = link.appendingPathComponent("file")
        }
        let (reached, gate) = (Gate(), Gate())
        let server = try LoopbackServer { [content] _ in
            reached.open()
            return [.wait(gate), .response(content)]
        }
        let first = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(first)
        await reached.opened()
        // However many are refused.
        for _ in 0..<3 {
            let error = await #expect(throws: DownloadError.self) {
                try await queue.run(DownloadTaskOperation(server.url(), to: other))
            }
            #expect(error?.localizedDescription.contains(other.path) == true)
        }
        gate.open()
        try await first.finished()
        #expect(server.requests.count == 1)
        _ = try await queue.run(DownloadTaskOperation(server.url(), to: other))
        #expect(try Data(contentsOf: destination) == content)
    }

    @Test("A destination is free again if other code finishes its operation")
    func finishedByOthers() async throws {
        let (reached, never) = (Gate(), Gate())
        let server = try LoopbackServer { [content] request in
            if request.path == "/new" { return [.response(content)] }
            reached.open()
            return [.wait(never)]
        }
        // The transfer does not end by itself.
        let request = URLRequest(url: server.url(), timeoutInterval: 10_000)
        let first = DownloadTaskOperation(request, to: destination)
        queue.addOperation(first)
        await reached.opened()
        first.finish(withError: TestError.first)
        await #expect(throws: TestError.first) { try await first.finished() }
        while true {
            do {
                _ = try await queue.run(DownloadTaskOperation(server.url("/new"), to: destination))
                break
            } catch DownloadError.destinationInUse {
                await Task.yield()
            }
        }
        #expect(try Data(contentsOf: destination) == content)
    }

    @Test("A folder that cannot be written to is an error")
    func cannotWrite() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let missing = folder.url.appendingPathComponent("missing/file")
        let error = await #expect(throws: DownloadError.self) {
            try await queue.run(DownloadTaskOperation(server.url(), to: missing))
        }
        #expect(error?.localizedDescription.contains(missing.path) == true)
    }

    @Test("A download whose part is removed while it comes is an error, and leaves the destination as it was")
    func removedPart() async throws {
        let gate = Gate()
        let server = try server(waitingFor: gate)
        try Data("old".utf8).write(to: destination)
        let operation = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(operation)
        await eventually("nothing comes") { operation.progress.completedUnitCount == 50_000 }
        try FileManager.default.removeItem(at: folder.url.appendingPathComponent("file.partial"))
        gate.open()
        let error = await #expect(throws: DownloadError.self) { try await operation.value }
        guard case .cannotWrite = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try String(contentsOf: destination, encoding: .utf8) == "old")
    }

    /// A server whose first answer breaks off, and which sends the rest when it is asked for that.
    private func breakingServer(after gate: Gate? = nil) throws -> LoopbackServer {
        try LoopbackServer { [content] request in
            if request.number == 1 {
                let half = [LoopbackServer.Step.head(content.count), .bytes(content.prefix(50_000)), .close]
                return (gate.map { [.wait($0)] } ?? []) + half
            }
            return [request.firstByte == 50_000 ? .rest(of: content, from: 50_000) : .response(content)]
        }
    }

    private func mode(_ file: URL) -> mode_t? {
        var status = stat()
        return unsafe stat(file.path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    @Test("Only its user can read a part and what is noted about it, which has no password and no signature in it")
    func secrets() async throws {
        let server = try breakingServer()
        _ = try folder.file("file.partial", "old")
        let url = try #require(URL(string: "http://me:secret@127.0.0.1:\(server.port)/film?signature=secret"))
        await #expect(throws: TransferError.self) {
            try await queue.run(DownloadTaskOperation(url, to: destination))
        }
        let files = ["partial", "partial-note"].map { destination.appendingPathExtension($0) }
        #expect(files.map(mode) == [0o600, 0o600])
        #expect(try !String(contentsOf: files[1], encoding: .utf8).contains("secret"))
        _ = try await queue.run(DownloadTaskOperation(url, to: destination))
        #expect(server.requests.last?.headers["range"] == "bytes=50000-")
    }

    @Test("A download from a URL that is relative goes on where it stopped")
    func relative() async throws {
        let server = try breakingServer()
        let url = try #require(URL(string: "film", relativeTo: server.url()))
        await #expect(throws: TransferError.self) {
            try await queue.run(DownloadTaskOperation(url, to: destination))
        }
        _ = try await queue.run(DownloadTaskOperation(url, to: destination))
        #expect(server.requests.last?.headers["range"] == "bytes=50000-")
        #expect(try Data(contentsOf: destination) == content)
    }

    @Test("A file has the mode of the one that it replaces, or else of any new file", arguments: [0o600, 0o751, nil])
    func modes(_ old: mode_t?) async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let new = folder.url.appendingPathComponent("new").path
        close(unsafe open(new, O_WRONLY | O_CREAT, 0o666))
        if let old {
            try Data("old".utf8).write(to: destination)
            #expect(unsafe chmod(destination.path, old) == 0)
        }
        try await folder.download(from: server)
        #expect(mode(destination) == old ?? mode(URL(fileURLWithPath: new)))
        #expect(folder.names == ["file", "new"])
    }

    @Test("A download whose file can't get the mode of a new one can be read by its user only, and is not lost")
    func unknownMode() async throws {
        let gate = Gate()
        let server = try server(waitingFor: gate)
        let operation = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(operation)
        await eventually("nothing comes") { operation.progress.completedUnitCount == 50_000 }
        // Where the mode would be found out.
        let note = destination.appendingPathExtension("partial-note")
        try FileManager.default.createDirectory(at: note, withIntermediateDirectories: false)
        gate.open()
        try await operation.finished()
        #expect(try Data(contentsOf: destination) == content && mode(destination) == 0o600)
        #expect(folder.names == ["file", "file.partial-note"])
    }

    @Test("The file behind a symbolic link is replaced, and the link stays")
    func link() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let other = TemporaryFolder()
        let file = URL(fileURLWithPath: try other.file("file", "old"))
        try FileManager.default.createSymbolicLink(at: destination, withDestinationURL: file)
        try await folder.download(from: server)
        #expect(try Data(contentsOf: file) == content)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: destination.path) == file.path)
        #expect(folder.names == ["file"] && other.names == ["file"])
    }

    @Test("A link that takes the place of a part while that comes is not followed", arguments: ["", "-note"])
    func plantedLink(_ ending: String) async throws {
        let gate = Gate()
        let server = try LoopbackServer { [content] _ in [.wait(gate), .head(content.count), .bytes(content)] }
        let mine = URL(fileURLWithPath: try folder.file("mine", "mine"))
        let operation = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(operation)
        await eventually("nothing was sent") { !server.requests.isEmpty }
        let part = destination.appendingPathExtension("partial" + ending)
        try? FileManager.default.removeItem(at: part)
        try FileManager.default.createSymbolicLink(at: part, withDestinationURL: mine)
        gate.open()
        try? await operation.finished()
        #expect(try String(contentsOf: mine, encoding: .utf8) == "mine")
        #expect(ending == "-note" || !FileManager.default.fileExists(atPath: destination.path))
    }

    @Test("A destination that another process loads to is in use")
    func otherProcess() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        // What another process does. The lock belongs to what was opened.
        let part = unsafe open(destination.path + ".partial", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        #expect(flock(part, LOCK_EX) == 0)
        await #expect(throws: DownloadError.self) {
            try await folder.download(from: server)
        }
        #expect(server.requests.isEmpty && folder.names == ["file.partial"])
        // A program that another test is just starting has the descriptor, too.
        #expect(flock(part, LOCK_UN) == 0)
        close(part)
        try await folder.download(content, from: server)
    }

    #if os(Linux)
    @Test("A program that is started meanwhile, and has the files of this one for a moment, keeps no destination")
    func startedProgram() async throws {
        let gate = Gate()
        let server = try breakingServer(after: gate)
        let operation = DownloadTaskOperation(server.url(), to: destination)
        queue.addOperation(operation)
        await eventually("nothing was sent") { !server.requests.isEmpty }
        // What the other program has.
        let part = try #require(
            (0..<10_000).first { number in
                let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
                return file?.hasPrefix(folder.url.path) == true
            })
        let copy = dup(Int32(part))
        defer { close(copy) }
        gate.open()
        await #expect(throws: TransferError.self) { try await operation.value }
        try await folder.download(content, from: server)
    }
    #endif

    @Test("A part that is opened while another one becomes the file is not that file")
    func openedMeanwhile() async throws {
        let (destination, errors) = (destination, EventLog())
        let bodies = (0..<3).map { number in
            { @Sendable in
                for _ in 0..<TestExtent.choose(1_000, long: 20_000) {
                    do {
                        let part = try PartialFile(for: destination, of: nil)
                        try part.begin(validator: nil)
                        try part.append(Data(repeating: UInt8(number), count: 1_000))
                        try part.moveToDestination()
                    } catch DownloadError.destinationInUse {
                    } catch {
                        errors.add("\(error)")
                    }
                }
            }
        }
        await concurrently(bodies)
        #expect(errors.events.isEmpty && folder.names == ["file"])
        let data = try Data(contentsOf: destination)
        #expect(data.count == 1_000 && Set(data).count == 1)
    }

    enum OtherThing: CaseIterable, Sendable {
        case folder, symbolicLink, hardLink, fileOfAnotherUser

        /// Only the administrator can give files away.
        static var possible: [OtherThing] { allCases.filter { $0 != .fileOfAnotherUser || geteuid() == 0 } }
    }

    @Test(
        "What has the name of a part, and is no file of this user alone, stays as it is, and nothing is sent",
        arguments: ["partial", "partial-note"], OtherThing.possible)
    func otherThings(named ending: String, _ thing: OtherThing) async throws {
        let other = destination.appendingPathExtension(ending)
        var file = folder.url.appendingPathComponent("mine")
        switch thing {
        case .folder:
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            file = other.appendingPathComponent("mine")
        case .fileOfAnotherUser: file = other
        case .symbolicLink, .hardLink: break
        }
        try Data("mine".utf8).write(to: file)
        switch thing {
        case .symbolicLink: try FileManager.default.createSymbolicLink(at: other, withDestinationURL: file)
        case .hardLink: try FileManager.default.linkItem(at: file, to: other)
        case .fileOfAnotherUser: #expect(unsafe chown(file.path, 1, 1) == 0)
        case .folder: break
        }
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let error = await #expect(throws: DownloadError.self) {
            try await folder.download(from: server)
        }
        #expect(error?.localizedDescription.contains(other.lastPathComponent) == true)
        #expect(try Data(contentsOf: file) == Data("mine".utf8) && server.requests.isEmpty)
    }
}
