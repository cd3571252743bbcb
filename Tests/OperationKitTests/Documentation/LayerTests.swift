import Foundation
import Testing

/// The folders of the library are layers, each of which knows only those before it.
@Suite("Layers of the library") struct LayerTests {
    private static let layers = [
        "FoundationSupport", "Lifecycle", "Progress", "Operations", "Deadlines", "Compound", "DataFlow", "Policies",
        "Collections", "Coordinators", "Queues", "Diagnostics",
    ]

    private static let sources = Result { try Repository.files(in: folder, endingWith: ".swift").map(Source.init) }
    private static let folder = "Sources/OperationKit"

    @Test("Every source of the library is in a folder that is a layer") func everyFolderIsALayer() throws {
        for source in try Self.sources.get() { #expect(Self.layers.contains(source.layer), "\(source.path)") }
    }

    @Test("A source names no type that a later layer declares", arguments: layers.indices)
    func sourcesLookDownward(place: Int) throws {
        let sources = try Self.sources.get()
        let later = Self.layers[place...].dropFirst()
        let hidden = Set(sources.filter { later.contains($0.layer) }.flatMap(\.declaredTypes))
        for source in sources where source.layer == Self.layers[place] {
            #expect(source.words.intersection(hidden).isEmpty, "\(source.path)")
        }
    }

    /// A source of the library, without its comments.
    private struct Source {
        /// Relative to the library.
        let path: String
        let layer: String
        /// The types that it declares at top level, for other sources to use.
        let declaredTypes: [String]
        /// All identifiers and keywords.
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
