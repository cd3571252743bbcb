#if os(Linux)
import OperationKitTestSupport

@testable import OperationKitProcess

/// Programs of a process whose limits, descriptors, users or paths are unusual, so each test has one of its own.
@Suite("Surroundings of processes", .hangGuard)
struct ProcessSurroundingsTests {
    private let folder = TemporaryFolder()

    // MARK: - Limits

    @Test("Programs that run while the limit of open files is lowered get their input and end")
    func loweredLimit() async {
        let path = folder.path + "/go"
        await #expect(processExitsWith: .success) { [path = path as String] in
            // Leaves low numbers for what else this process opens under the limit.
            let low = (0..<64).map { _ in unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
            let operations = (0..<5).map { _ in shell("until [ -d '\(path)' ]; do sleep 0.02; done; cat") }
            for operation in operations {
                operation.input = Data(count: 100_000)
                operation.start()
            }
            for number in low { close(number) }
            await withFileLimit(16) {
                #expect(unsafe mkdir(path, 0o700) == 0)
                await eventually("they do not end") { operations.allSatisfy(\.isFinished) }
            }
            #expect(operations.allSatisfy { $0.output?.standardOutput.count == 100_000 })
        }
    }
}

/// Has the limit for the numbers of descriptors while a closure runs.
private func withFileLimit(_ count: Int32, _ body: () async -> Void) async {
    let resource = __rlimit_resource_t(7)
    var limit = rlimit()
    unsafe getrlimit(resource, &limit)
    let most = limit.rlim_cur
    limit.rlim_cur = rlim_t(count)
    unsafe setrlimit(resource, &limit)
    await body()
    limit.rlim_cur = most
    unsafe setrlimit(resource, &limit)
}
#endif
