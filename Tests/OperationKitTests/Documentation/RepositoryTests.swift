import OperationKitTestSupport

@Suite("Layout of the sources")
struct RepositoryTests {
    @Test("No file is longer than 350 lines", arguments: ["Sources", "Examples", "Tests"])
    func lengthOfFiles(folder: String) throws {
        for file in Repository.files(in: folder, endingWith: ".swift") {
            let lines = try Repository.text(file).split(separator: "\n", omittingEmptySubsequences: false).count - 1
            #expect(lines <= 350, "\(file) has \(lines) lines.")
        }
    }

    @Test("Every test has a sentence of its own, without a final period") func sentencesOfTests() throws {
        var places: [String: String] = [:]
        for file in Repository.files(in: "Tests", endingWith: ".swift") {
            let text = try Repository.text(file)
            let sentences = Self.tests(inSource: text)
            let count = text.split(separator: "\n").count { $0.drop { $0 == " " }.hasPrefix("@Test") }
            #expect(sentences.count == count, "\(file) has \(count) tests and \(sentences.count) sentences.")
            for sentence in sentences {
                if !sentence.contains(" ") || sentence.hasSuffix(".") {
                    Issue.record("\(file): “\(sentence)” is no sentence, or has a final period.")
                }
                if let other = places.updateValue(file, forKey: sentence) {
                    Issue.record("\(file) and \(other) have the same sentence: \(sentence)")
                }
            }
        }
        #expect(places.count > 500)
    }

    /// The sentences of all tests in a Swift file.
    private static func tests(inSource text: String) -> [String] {
        text.matches(of: /@Test\(\s*"((?:[^"\\]|\\.)*)"/).map { String($0.1.replacing(/\\(.)/) { $0.1 }) }
    }

    @Test("The life cycle imports nothing") func lifeCycleImports() throws {
        let files = Repository.files(in: "Sources/OperationKit/Lifecycle", endingWith: ".swift")
        #expect(!files.isEmpty)
        for file in files {
            let text = try Repository.text(file)
            #expect(!text.split(separator: "\n").contains { $0.contains("import ") && !$0.contains("///") }, "\(file)")
        }
    }

    @Test("Every mistake that is reported is in the article about debugging") func everyMistake() throws {
        let source = try Repository.text("Sources/OperationKit/Operations/MisuseReport.swift")
        let article = try Repository.text("Sources/OperationKit/OperationKit.docc/Debugging.md")
        let mistakes = source.matches(of: /\n    case (\w+)\(/).map { String($0.1) }
        #expect(mistakes.count > 3)
        for mistake in mistakes { #expect(article.contains("MisuseReport/\(mistake)("), "\(mistake)") }
    }

    @Test("Every article and every page of a symbol is reached from the landing page") func everyArticle() throws {
        let catalog = "Sources/OperationKit/OperationKit.docc"
        let landingPage = try Repository.text("\(catalog)/OperationKit.md")
        for file in Repository.files(in: catalog, endingWith: ".md") {
            let name = String(file.dropFirst(catalog.count + 1).dropLast(3))
            if name == "OperationKit" { continue }
            // The page of a symbol is in the folder of its module.
            let path = name.split(separator: "/")
            let link = path.count == 1 ? "<doc:\(name)>" : path[0] == "OperationKit" ? "``\(path[1])``" : "``\(name)``"
            #expect(landingPage.contains("- \(link)"), "\(name) is not among the topics.")
        }
    }

    @Test("Relative links lead to files", arguments: ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
    func relativeLinks(document: String) throws {
        for link in try Repository.text(document).matches(of: /\]\(([^)#:]+)\)/) {
            let target = Repository.root.appendingPathComponent(String(link.1))
            #expect(FileManager.default.fileExists(atPath: target.path), "\(document) links to \(link.1).")
        }
    }
}
