import Foundation
import OperationKitTestSupport
import Testing

@Suite("Article: Misuse")
struct MisuseArticleTests {
    /// The rows of the tables in the article, without their heads.
    private static func rows(of article: String) -> [Substring] {
        article.split(separator: "\n").filter { line in
            line.hasPrefix("| ") && !line.hasPrefix("| Misuse |")
        }
    }

    /// The names in the last column of a row.
    private static func tests(in row: Substring) -> [String] {
        let columns = row.split(separator: "|")
        return columns.count == 3 ? columns[2].matches(of: /`([A-Za-z0-9_]+)`/).map { String($0.1) } : []
    }

    @Test func everyRowNamesTestsThatExist() throws {
        let names = Set(
            try Repository.files(in: "Tests", endingWith: ".swift").flatMap { file in
                try Repository.text(file).matches(of: /@Test[^{]*?func ([A-Za-z0-9_]+)\(/).map { String($0.1) }
            })
        let rows = Self.rows(of: try Repository.text("Sources/OperationKit/OperationKit.docc/Misuse.md"))
        #expect(rows.count > 50)
        for row in rows {
            let tests = Self.tests(in: row)
            #expect(!tests.isEmpty, "Nothing shows this: \(row)")
            for test in tests {
                // Not in the expectation, which would print all the names.
                let exists = names.contains(test)
                #expect(exists, "There is no test \(test).")
            }
        }
    }

    @Test func namesAreReadFromTheLastColumn() {
        let article = """
            | Misuse | What happens | Shown by |
            |---|---|---|
            | `start()` twice | ignored | `one`, `two` |
            | no test | hangs | |
            """
        let rows = Self.rows(of: article)
        #expect(rows.map { Self.tests(in: $0) } == [["one", "two"], []])
    }
}
