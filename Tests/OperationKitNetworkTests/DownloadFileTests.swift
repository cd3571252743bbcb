import OperationKitTestSupport

@testable import OperationKitNetwork

/// Downloads whose files get into trouble.
@Suite("Files of downloads", .hangGuard, .stopsServers)
struct DownloadFileTests {
    private let folder = TemporaryFolder()
    private let content = Data.sample

    private var destination: URL { folder.destination }

    @Test(
        "A symbolic link whose file is missing is followed, and that file is created",
        arguments: ["file", "chain", "behind/up"])
    func danglingLink(_ name: String) async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let files = FileManager.default
        let (inner, path) = (folder.url.appendingPathComponent("a/b"), folder.url.path)
        try files.createDirectory(at: inner, withIntermediateDirectories: true)
        try files.createSymbolicLink(atPath: path + "/behind", withDestinationPath: "a/b")
        try files.createSymbolicLink(atPath: path + "/file", withDestinationPath: path + "/a/new")
        try files.createSymbolicLink(atPath: path + "/chain", withDestinationPath: "behind/../new")
        try files.createSymbolicLink(atPath: path + "/behind/up", withDestinationPath: "../new")
        let link = folder.url.appendingPathComponent(name)
        let output = try await OperationQueue().run(DownloadTaskOperation(server.url(), to: link))
        #expect(output.file == link && files.contents(atPath: path + "/a/new") == content)
        #expect(try files.contentsOfDirectory(atPath: path + "/a").sorted() == ["b", "new"])
        #expect(folder.names == ["a", "behind", "chain", "file"])
        #expect(throws: Never.self) { try files.destinationOfSymbolicLink(atPath: link.path) }
    }

    @Test("A symbolic link to where no file can be is an error before anything is sent")
    func linkToNowhere() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let nowhere = folder.url.appendingPathComponent("missing/file")
        try FileManager.default.createSymbolicLink(at: destination, withDestinationURL: nowhere)
        await #expect(throws: DownloadError.self) { try await folder.download(from: server) }
        #expect(server.requests.isEmpty && folder.names == ["file"])
    }

    #if os(Linux)
    /// Whether the system forbids to follow a link in a shared folder that belongs neither to this user nor to the owner of the folder.
    private static var protectsLinks: Bool {
        (try? String(contentsOfFile: "/proc/sys/fs/protected_symlinks", encoding: .utf8)) == "1\n" && geteuid() == 0
    }

    @Test("A link that the system forbids to follow is not followed", .enabled(if: protectsLinks))
    func linkOfAnotherUser() async throws {
        let server = try LoopbackServer { [content] _ in [.response(content)] }
        let secret = folder.url.appendingPathComponent("secret")
        try Data("secret".utf8).write(to: secret)
        try FileManager.default.createSymbolicLink(at: destination, withDestinationURL: secret)
        // Some containers have no such user.
        guard unsafe lchown(destination.path, 65_534, 65_534) == 0 else { return }
        #expect(unsafe chmod(folder.path, 0o1777) == 0)
        let error = await #expect(throws: DownloadError.self) { try await folder.download(from: server) }
        #expect(error?.localizedDescription.contains("Permission denied") == true && server.requests.isEmpty)
        #expect(try String(contentsOf: secret, encoding: .utf8) == "secret")
    }
    #endif

    @Test("A complete part that can't be moved to its destination is kept, and the next download asks for nothing more")
    func unmovable() async throws {
        let gate = Gate()
        let server = try LoopbackServer { [content] request in
            if let first = request.firstByte {
                let range = "bytes */\(content.count)"
                return [.response(first < content.count ? 500 : 416, headers: ["Content-Range": range])]
            }
            return [.head(content.count), .wait(gate), .bytes(content)]
        }
        let operation = DownloadTaskOperation(server.url(), to: destination)
        OperationQueue().addOperation(operation)
        await eventually("nothing was sent") { !server.requests.isEmpty }
        try FileManager.default.createDirectory(at: destination, withIntermediateDirectories: false)
        gate.open()
        let error = await #expect(throws: DownloadError.self) { try await operation.value }
        #expect(error?.localizedDescription.hasSuffix("Is a directory.") == true)
        #expect(folder.names == ["file", "file.partial", "file.partial-note"])
        let part = destination.appendingPathExtension("partial").path
        #expect(try FileManager.default.attributesOfItem(atPath: part)[.posixPermissions] as? Int == 0o600)
        try FileManager.default.removeItem(at: destination)
        let next = DownloadTaskOperation(server.url(), to: destination)
        #expect(try await OperationQueue().run(next).response.status == 416)
        #expect(try Data(contentsOf: destination) == content && folder.names == ["file"])
        #expect(server.requests.map(\.firstByte) == [nil, content.count] && next.progress.fractionCompleted == 1)
    }

    #if os(Linux)
    @Test("A download whose note can't be written leaves nothing, and says what the system says")
    func fullDisk() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryFolder()
            signal(SIGXFSZ, SIG_IGN)
            let part = try PartialFile(for: folder.destination, of: nil)
            let most = setLimit(RLIMIT_FSIZE, to: 0)
            let result = Result { try part.begin(validator: "\"1\"") }
            setLimit(RLIMIT_FSIZE, to: most)
            part.stop()
            guard case .failure(let error) = result else { exit(2) }
            let saysWhy = error.localizedDescription.hasSuffix(" could not be written: File too large.")
            exit(saysWhy && folder.names.isEmpty ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif
}
