import OperationKitTestSupport

/// A fenced block of Swift in a document or in a documentation comment.
struct CodeBlock: Equatable {
    /// The document, relative to the repository.
    let file: String
    /// The line of the document on which the code begins, from 1.
    let line: Int
    var code: [String]
    /// Whether the closing fence is there.
    var isClosed = true

    /// Whether it is a package manifest, which is compiled against the package manager's library.
    var isManifest: Bool { code.contains("import PackageDescription") }

    /// The blocks of a Markdown document, or in the `///` comments of a source file. Outside of these no block goes on.
    static func blocks(of text: String, file: String) -> [CodeBlock] {
        let lines = text.components(separatedBy: "\n").map { line -> String? in
            if !file.hasSuffix(".swift") { return line }
            let comment = line.drop { $0 == " " }
            return comment.hasPrefix("///") ? String(comment.dropFirst(3)) : nil
        }
        var blocks: [CodeBlock] = []
        var open: (fence: String, indentation: Int, language: String, line: Int, code: [String])?
        func close(_ isClosed: Bool) {
            if let block = open, block.language == "swift" {
                blocks.append(CodeBlock(file: file, line: block.line, code: block.code, isClosed: isClosed))
            }
            open = nil
        }
        for (index, line) in lines.enumerated() {
            guard let line else {
                close(false)
                continue
            }
            let content = line.drop { $0 == " " }
            if let block = open {
                if content == block.fence {
                    close(true)
                } else {
                    open?.code.append(String(line.dropFirst(min(block.indentation, line.count - content.count))))
                }
            } else if content.hasPrefix("```") {
                let fence = content.prefix { $0 == "`" }
                let language = content.dropFirst(fence.count).prefix { $0 != " " }
                open = (String(fence), line.count - content.count, String(language), index + 2, [])
            }
        }
        close(false)
        return blocks
    }
}

extension CodeBlock {
    /// What a file that contains the block looks like. The compiler's messages name the document and its lines.
    ///
    /// Imports are hoisted, and the code becomes the body of a function that may throw and await, as the code of a
    /// `main.swift` may. A block with declarations that cannot be local stays at file scope.
    func program(number: Int) -> String {
        var imports = ["import Dispatch", "import Foundation", "import OperationKit"]
        // What a product says of itself needs the product.
        if let product = file.firstMatch(of: /^Sources\/(OperationKit\w+)\//)?.1 { imports.append("import \(product)") }
        #if canImport(FoundationNetworking)
        if file.hasPrefix("Sources/OperationKitNetwork/") { imports.append("import FoundationNetworking") }
        #endif
        let body = code.map { line in
            guard line.hasPrefix("import ") else { return line }
            imports.append(line)
            return ""
        }
        let location = "#sourceLocation(file: \"\(file)\", line: \(line))"
        let isFileScope = body.contains { line in
            ["extension ", "public ", "open ", "@main"].contains { line.hasPrefix($0) }
        }
        let head = isFileScope ? [] : ["func block\(number)() async throws {"]
        let foot = isFileScope ? [] : ["}"]
        return (imports + head + [location] + body + ["#sourceLocation()"] + foot).joined(separator: "\n") + "\n"
    }
}
