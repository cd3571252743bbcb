import Foundation
import OperationKitTestSupport
import Testing

@Suite("Tables of tests in the articles")
struct TestTableTests {
    @Test("Every row of a table of tests names tests that exist")
    func namedTestsExist() throws {
        let tests = Set(
            try Repository.files(in: "Tests", endingWith: ".swift").flatMap { file in
                TestTable.tests(inSource: try Repository.text(file))
            })
        for article in ["README.md"] + Repository.files(in: "Sources", endingWith: ".md") {
            for row in TestTable.rows(ofMarkdown: try Repository.text(article)) {
                #expect(!row.tests.isEmpty, "\(article):\(row.line) names no test.")
                for test in row.tests {
                    // Not in the expectation, which would print all the sentences.
                    let exists = tests.contains(test)
                    #expect(exists, "\(article):\(row.line) names a test that does not exist: \(test)")
                }
            }
        }
    }

    @Test(
        "An article with promises has a table of tests",
        arguments: ["Compounds", "Coordination", "DataFlow", "LifeCycle", "ObservingOperations", "Testing"])
    func articlesHaveTables(article: String) throws {
        let text = try Repository.text("Sources/OperationKit/OperationKit.docc/\(article).md")
        #expect(TestTable.rows(ofMarkdown: text).count > 10)
    }

    @Test("Tests are read from the last column of the tables that have one for them")
    func testsOfArticle() {
        let article = """
            | Guarantee | Test |
            |---|---|
            | one | `finish` ends it, once |
            | several | “Two, or three”, “`four`” |
            | none | |

            | Not of tests | Meaning |
            |---|---|
            | one | two |
            """
        #expect(
            TestTable.rows(ofMarkdown: article) == [
                .init(line: 3, tests: ["`finish` ends it, once"]), .init(line: 4, tests: ["Two, or three", "`four`"]),
                .init(line: 5, tests: []),
            ])
    }

    @Test("The sentences of tests are found, and those alone")
    func testsOfSource() {
        let source = #"""
            @Test("Says one") func one() {}
            @Test(
                "Says \"two\"", arguments: ["three"])
            func two(text: String) {}
            @Suite("Four") struct Four {}
            """#
        #expect(TestTable.tests(inSource: source) == ["Says one", #"Says "two""#])
    }
}
