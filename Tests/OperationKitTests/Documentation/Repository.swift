import OperationKitTestSupport

/// The files of the package, as they are on disk.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

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
        let sources = files(in: "Sources", endingWith: ".swift")
        return try documents.flatMap { CodeBlock.blocks(ofMarkdown: try text($0), file: $0) }
            + sources.flatMap { CodeBlock.blocks(ofSource: try text($0), file: $0) }
    }
}
