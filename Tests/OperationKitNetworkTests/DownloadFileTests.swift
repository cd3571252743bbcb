import OperationKitTestSupport

@testable import OperationKitNetwork

/// Downloads whose files get into trouble.
@Suite("Files of downloads", .hangGuard, .stopsServers)
struct DownloadFileTests {
    #if os(Linux)
    @Test("A download whose note can't be written leaves nothing, and says what the system says")
    func fullDisk() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryFolder()
            signal(SIGXFSZ, SIG_IGN)
            let part = try PartialFile(for: folder.destination, of: nil)
            var limit = rlimit()
            let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
            unsafe getrlimit(resource, &limit)
            let most = limit.rlim_cur
            limit.rlim_cur = 0
            unsafe setrlimit(resource, &limit)
            let result = Result { try part.begin(validator: "\"1\"") }
            limit.rlim_cur = most
            unsafe setrlimit(resource, &limit)
            part.stop()
            guard case .failure(let error) = result else { exit(2) }
            let saysWhy = error.localizedDescription.hasSuffix(" could not be written: File too large.")
            exit(saysWhy && folder.names.isEmpty ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
    #endif
}
