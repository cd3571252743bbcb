import OperationKitTestSupport

@Suite("Layout of the sources")
struct RepositoryTests {
    @Test("No file has over 350 lines", arguments: ["Sources", "Examples", "Tests"])
    func lengthOfFiles(folder: String) throws {
        for file in Repository.files(in: folder, endingWith: ".swift") {
            let lines = try Repository.text(file).utf8.count { $0 == 10 }
            #expect(lines <= 350, "\(file) has \(lines) lines.")
        }
    }

    @Test("Every test has a sentence of its own, without a final period") func sentencesOfTests() throws {
        var places: [String: String] = [:]
        for file in Repository.files(in: "Tests", endingWith: ".swift") {
            let text = try Repository.text(file)
            let sentences = Self.sentences(in: text)
            let count = text.utf8.split(separator: 10).count { $0.drop { $0 == 32 }.starts(with: "@Test".utf8) }
            #expect(sentences.count == count, "\(file) has \(count) tests and \(sentences.count) sentences.")
            for sentence in sentences {
                let isSentence = sentence.contains(" ") && !sentence.hasSuffix(".")
                #expect(isSentence, "\(file): “\(sentence)” is no sentence, or has a final period.")
                let other = places.updateValue(file, forKey: sentence)
                #expect(other == nil, "\(file) and \(other ?? "") have the same sentence: \(sentence)")
            }
        }
        #expect(places.count > 500)
    }

    /// The sentences of all tests in a Swift file: the literals that come first in their attributes.
    private static func sentences(in text: String) -> [String] {
        text.components(separatedBy: "@" + "Test(").dropFirst().compactMap { rest in
            let literal = rest.drop(while: \.isWhitespace)
            if literal.first != "\"" { return nil }
            let text = literal.dropFirst().prefix(500).replacingOccurrences(of: "\\\"", with: "”")
            return text.components(separatedBy: "\"")[0]
        }
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

/// The folders of the library are layers, each of which knows only those before it.
@Suite("Layers of the library") struct LayerTests {
    private static let layers = [
        "FoundationSupport", "Lifecycle", "Progress", "Operations", "Deadlines", "Compound", "DataFlow", "Policies",
        "Collections", "Coordinators", "Queues", "Diagnostics",
    ]

    private static let sources = Result { try Repository.files(in: folder, endingWith: ".swift").map(Source.init) }
    private static let folder = "Sources/OperationKit"

    @Test("A source is in the folder of a layer, and names no type of a later one", arguments: layers.indices)
    func sourcesLookDownward(place: Int) throws {
        let sources = try Self.sources.get()
        #expect(Set(sources.map(\.layer)) == Set(Self.layers))
        let later = Self.layers[place...].dropFirst()
        let hidden = Set(sources.filter { later.contains($0.layer) }.flatMap(\.declaredTypes))
        for source in sources where source.layer == Self.layers[place] {
            #expect(source.words.intersection(hidden).isEmpty, "\(source.path)")
        }
    }

    /// A source of the library, without its comments.
    private struct Source {
        let path: String
        let layer: String
        /// The types that it declares at top level, for other sources to use.
        let declaredTypes: [String]
        let words: Set<String>

        init(_ file: String) throws {
            path = String(file.dropFirst(folder.count + 1))
            layer = String(path.prefix { $0 != "/" })
            let lines = try Repository.text(file).components(separatedBy: "\n")
                .map { $0.components(separatedBy: "//")[0] }
            let declaration =
                /^(?:@\w+ )*(?:(?:public|open|final|indirect) )*(?:class|struct|enum|protocol|actor|typealias) (\w+)/
            declaredTypes = lines.filter { $0.first != " " }
                .compactMap { $0.firstMatch(of: declaration).map { String($0.1) } }
            let characters = CharacterSet.alphanumerics.union(["_"]).inverted
            words = Set(lines.flatMap { $0.components(separatedBy: characters) })
        }
    }
}

#if os(Linux) || os(macOS)
@Suite("Code blocks of the documentation") struct CodeBlockTests {
    @Test("Every block of Swift in the documentation compiles") func everyBlock() async throws {
        let blocks = try Repository.codeBlocks()
        for file in ["README.md", "Sources/OperationKit/Operations/AsyncOperation.swift"] {
            #expect(blocks.contains { $0.file == file }, "No block was found in \(file).")
        }
        for block in blocks { #expect(block.isClosed, "The block at \(block.file):\(block.line) is not closed.") }
        let messages = try await TypeChecker().check(blocks.filter { !$0.isManifest })
        #expect(messages == nil, "\(messages ?? "")")
    }
}
#endif

/// The files of the package, as they are on disk.
enum Repository {
    static let root = BuildProducts.repository

    static func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: root.appendingPathComponent(path)), as: UTF8.self)
    }

    /// The files below a folder whose names end so, in alphabetical order. All paths are relative to the package.
    static func files(in folder: String, endingWith ending: String) -> [String] {
        let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
        return (files?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(ending) }.sorted()
            .map { "\(folder)/\($0)" }
    }

    /// All blocks of Swift that a reader may copy.
    static func codeBlocks() throws -> [CodeBlock] {
        let documents = ["README.md", "CHANGELOG.md"] + files(in: "Sources", endingWith: ".md")
        return try (documents + files(in: "Sources", endingWith: ".swift")).flatMap { file in
            CodeBlock.blocks(of: try text(file), file: file)
        }
    }
}
