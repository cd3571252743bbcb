import OperationKitTestSupport

@Suite("Code blocks of the documentation")
struct CodeBlockTests {
    #if os(Linux) || os(macOS)
    @Test("Every block of Swift in the documentation compiles") func everyBlock() async throws {
        let blocks = try Repository.codeBlocks()
        for file in ["README.md", "Sources/OperationKit/Operations/AsyncOperation.swift"] {
            #expect(blocks.contains { $0.file == file }, "No block was found in \(file).")
        }
        for block in blocks { #expect(block.isClosed, "The block at \(block.file):\(block.line) is not closed.") }
        let messages = try await TypeChecker().check(blocks.filter { !$0.isManifest })
        #expect(messages == nil, "\(messages ?? "")")
    }

    @Test("Every manifest in the documentation compiles") func everyManifest() async throws {
        let manifests = try Repository.codeBlocks().filter(\.isManifest)
        #expect(!manifests.isEmpty)
        for manifest in manifests {
            let messages = try await TypeChecker().check(manifest: manifest)
            #expect(messages == nil, "\(messages ?? "")")
        }
    }

    @Test("The manifest of the tutorial names what the steps import") func tutorialImports() throws {
        let page = "Sources/OperationKit/OperationKit.docc/GettingStarted.md"
        let blocks = CodeBlock.blocks(of: try Repository.text(page), file: page)
        let manifest = blocks.filter(\.isManifest).flatMap(\.code).joined()
        let imports = Set(blocks.flatMap(\.code).filter { $0.hasPrefix("import OperationKit") })
        #expect(imports.count > 1)
        for line in imports { #expect(manifest.contains("\"\(line.dropFirst("import ".count))\"")) }
    }
    #endif

    @Test("Blocks of Markdown and of documentation comments are found with their lines") func places() {
        let text = """
            ```text
            not Swift
            ```
            - Item
              ```swift
              if true {
                  two()
              }
              ```
            """
        let item = CodeBlock(file: "A.md", line: 6, code: ["if true {", "    two()", "}"])
        #expect(CodeBlock.blocks(of: text, file: "A.md") == [item])
        let source = """
            /// ```swift
            /// A().b()
            /// ```
            struct A {
                /// ```swift
                /// is never closed
                func b() {}
            }
            """
        #expect(
            CodeBlock.blocks(of: source, file: "A.swift") == [
                CodeBlock(file: "A.swift", line: 2, code: ["A().b()"]),
                CodeBlock(file: "A.swift", line: 6, code: ["is never closed"], isClosed: false),
            ])
    }
}
