import Foundation
import OperationKitTestSupport

/// The rows of a Markdown file that name the tests which prove them: those of all tables whose last column is headed
/// *Test*.
///
/// A test is named by its sentence. Several are in quotation marks, with commas between them: “One”, “Two”.
enum TestTable {
    struct Row: Equatable {
        let line: Int
        let tests: [String]
    }

    static func rows(ofMarkdown text: String) -> [Row] {
        var rows: [Row] = []
        var head: String?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let cell = lastCell(of: line) else {
                head = nil
                continue
            }
            if head == nil {
                head = cell
            } else if head == "Test", !line.hasPrefix("|-") {
                rows.append(Row(line: index + 1, tests: tests(inCell: cell)))
            }
        }
        return rows
    }

    private static func lastCell(of line: Substring) -> String? {
        let cells = line.split(separator: "|", omittingEmptySubsequences: false)
        guard line.hasPrefix("|"), cells.count > 2 else { return nil }
        return cells[cells.count - 2].trimmingCharacters(in: .whitespaces)
    }

    private static func tests(inCell cell: String) -> [String] {
        if cell.isEmpty { return [] }
        if !cell.hasPrefix("“") { return [cell] }
        return cell.dropFirst().dropLast().components(separatedBy: "”, “")
    }

    /// The sentences of all tests in a Swift file.
    static func tests(inSource text: String) -> [String] {
        text.matches(of: /@Test\(\s*"((?:[^"\\]|\\.)*)"/).map { String($0.1.replacing(/\\(.)/) { $0.1 }) }
    }
}
