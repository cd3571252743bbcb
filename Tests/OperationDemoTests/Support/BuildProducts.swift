import Foundation
import Testing

/// Where the executable under test is, and the sources it was built from.
enum BuildProducts {
    /// The executable lies in the directory of the test bundle, or above it, wherever the build was directed.
    static func demo() throws -> URL {
        let bundles = CommandLine.arguments + Bundle.allBundles.map(\.bundlePath)
        let found = bundles.lazy.compactMap { path in executable(above: URL(fileURLWithPath: path)) }.first
        return try #require(found, "OperationDemo has to be built next to its tests")
    }

    static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func executable(above url: URL) -> URL? {
        var directory = url.standardizedFileURL.resolvingSymlinksInPath()
        while directory.pathComponents.count > 1 {
            directory.deleteLastPathComponent()
            let candidate = directory.appendingPathComponent("OperationDemo", isDirectory: false)
            var isDirectory: ObjCBool = false
            let exists = unsafe FileManager.default.fileExists(atPath: candidate.path, isDirectory: &isDirectory)
            if exists, !isDirectory.boolValue, FileManager.default.isExecutableFile(atPath: candidate.path) {
                return candidate
            }
        }
        return nil
    }
}
