import Foundation
import Testing

/// Where the executables under test are, and the sources they were built from.
package enum BuildProducts {
    /// Returns an executable of this package. It lies in the directory of the test bundle, or above it, wherever the build
    /// was directed.
    package static func executable(_ name: String) throws -> URL {
        let bundles = CommandLine.arguments + Bundle.allBundles.map(\.bundlePath)
        let found = bundles.lazy.compactMap { path in executable(name, above: URL(fileURLWithPath: path)) }.first
        return try #require(found, "\(name) has to be built next to its tests")
    }

    package static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func executable(_ name: String, above url: URL) -> URL? {
        var directory = url.standardizedFileURL.resolvingSymlinksInPath()
        while directory.pathComponents.count > 1 {
            directory.deleteLastPathComponent()
            let candidate = directory.appendingPathComponent(name, isDirectory: false)
            let isDirectory = (try? candidate.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory
            if isDirectory == false, FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
        }
        return nil
    }
}
