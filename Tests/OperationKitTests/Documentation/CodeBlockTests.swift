import OperationKitTestSupport

@Suite("Code blocks of the documentation")
struct CodeBlockTests {
    #if os(Linux) || os(macOS)
    @Test("Every block of Swift in the documentation compiles") func everyBlock() async throws {
        let blocks = try Repository.codeBlocks()
        for file in ["README.md", "Sources/OperationKit/Operations/AsyncOperation.swift"] {
            #expect(blocks.contains { $0.file == file }, "No block was found in \(file).")
        }
        for block in blocks where !block.isClosed {
            Issue.record("The block at \(block.file):\(block.line) is not closed.")
        }
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
        let blocks = CodeBlock.blocks(ofMarkdown: try Repository.text(page), file: page)
        let manifest = blocks.filter(\.isManifest).flatMap(\.code).joined()
        let imports = Set(blocks.flatMap(\.code).filter { $0.hasPrefix("import OperationKit") })
        #expect(imports.count > 1)
        for line in imports { #expect(manifest.contains("\"\(line.dropFirst("import ".count))\"")) }
    }

    @Test("A block that does not compile is reported with its place and the compiler's message")
    func brokenBlock() async throws {
        let good = CodeBlock(file: "Good.md", line: 1, code: ["AsyncOperation().start()"])
        let broken = CodeBlock(file: "Broken.md", line: 41, code: ["import Foundation", "AsyncOperation().begin()"])
        let messages = try #require(try await TypeChecker().check([good, broken]))
        #expect(messages.contains("Broken.md:42"))
        #expect(messages.contains("no member 'begin'"))
        #expect(!messages.contains("Good.md"))
    }

    #endif

    @Test("Blocks of Markdown are found with their lines") func blocksOfMarkdown() {
        let text = """
            # Title
            ```swift
            let one = 1
            ```
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
        #expect(
            CodeBlock.blocks(ofMarkdown: text, file: "A.md") == [
                CodeBlock(file: "A.md", line: 3, code: ["let one = 1"]),
                CodeBlock(file: "A.md", line: 10, code: ["if true {", "    two()", "}"]),
            ])
    }

    @Test("Blocks of documentation comments are found with their lines") func blocksOfComments() {
        let text = """
            /// A type.
            ///
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
            CodeBlock.blocks(ofSource: text, file: "A.swift") == [
                CodeBlock(file: "A.swift", line: 4, code: ["A().b()"]),
                CodeBlock(file: "A.swift", line: 8, code: ["is never closed"], isClosed: false),
            ])
    }
}
