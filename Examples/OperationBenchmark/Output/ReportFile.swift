import CommandLineSupport
import Foundation

/// The file that `--json` names.
struct ReportFile {
    private let path: String
    private var url: URL { URL(fileURLWithPath: path) }

    /// Checks that the file can be written before a long run, so that its report isn't lost. What is in the file
    /// stays there.
    init(path: String) throws(UsageError) {
        self.path = path
        let manager = FileManager.default
        do {
            if !manager.fileExists(atPath: path) { try Data().write(to: url) }
            try FileHandle(forWritingTo: url).close()
        } catch {
            throw cannotBeWritten
        }
    }

    func write(_ report: Report) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(report) + Data("\n".utf8)
        do { try data.write(to: url) } catch { throw cannotBeWritten }
    }

    private var cannotBeWritten: UsageError {
        UsageError(message: "“\(path)” cannot be written: expected a file for --json that can.")
    }
}

extension Report {
    /// Reads the report of an earlier run.
    init(readFrom path: String) throws(UsageError) {
        do {
            self = try JSONDecoder().decode(Report.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw UsageError(message: "“\(path)” cannot be read: expected a file that --json wrote.")
        }
    }
}
