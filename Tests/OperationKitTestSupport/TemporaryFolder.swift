import Foundation

/// A folder that is removed with the test.
package final class TemporaryFolder: Sendable {
    package let url = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
        .appendingPathComponent("OperationKit-\(UUID().uuidString)", isDirectory: true)

    package init() { try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    package var path: String { url.path }

    /// Writes a file, creating the folders above it, and returns its path.
    @discardableResult
    package func file(_ name: String, _ text: String) throws -> String {
        let file = url.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// Creates a file of this size that takes no room.
    package func hole(_ name: String, size: UInt64) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file(name, "")))
        try handle.truncate(atOffset: size)
        try handle.close()
    }

    /// Writes a file that may be executed, and returns its path.
    ///
    /// A shell writes it. What this process has open for writing, a program that another test is just starting has open as well, and
    /// until that has begun, no system would execute the file.
    package func script(_ name: String, _ text: String) throws -> String {
        let path = url.appendingPathComponent(name).path
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", #"printf %s "$1" >"$0" && chmod 755 "$0""#, path, text]
        try shell.run()
        shell.waitUntilExit()
        return path
    }

    package var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: url.path).sorted()) ?? [] }
}
