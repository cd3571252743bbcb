import Foundation

/// A directory that is removed with its last reference.
final class TemporaryDirectory: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .resolvingSymlinksInPath()
            .appendingPathComponent("OperationDemoTests-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    var path: String {
        url.path
    }

    /// Creates a file, and the directories above it.
    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        let file = url.appendingPathComponent(name, isDirectory: false)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// Creates a file of this size that takes no room.
    func writeHole(of size: UInt64, to name: String) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: write("", to: name)))
        try handle.truncate(atOffset: size)
        try handle.close()
    }
}
