import Foundation

/// The file that `--json` names.
struct ReportFile {
    private let url: URL

    /// Looks whether the file can be written, so that nobody waits for a run whose report is lost. What is in the file
    /// stays there.
    init(path: String) throws(UsageError) {
        url = URL(fileURLWithPath: path)
        let manager = FileManager.default
        do {
            if !manager.fileExists(atPath: path) { try Data().write(to: url) }
            try FileHandle(forWritingTo: url).close()
        } catch {
            throw UsageError(message: "“\(path)” cannot be written: expected a file for --json that can.")
        }
    }

    func write(_ report: Report) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try (encoder.encode(report) + Data("\n".utf8)).write(to: url)
    }
}
