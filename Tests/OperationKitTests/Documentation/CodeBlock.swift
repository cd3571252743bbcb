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

    /// Whether it is a package manifest, which does not use the library. `.ci/readme-example` builds with each.
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

#if os(Linux) || os(macOS)
/// Checks code with the compiler, as a user of the library would.
struct TypeChecker {
    /// Where the modules are that were built together with the tests.
    let modules: URL

    init() throws {
        let products = try BuildProducts.executable("OperationDemo").deletingLastPathComponent()
        modules = try #require(
            [products.appendingPathComponent("Modules"), products].first { folder in
                let module = folder.appendingPathComponent("OperationKit.swiftmodule")
                return FileManager.default.fileExists(atPath: module.path)
            })
    }

    /// Checks blocks that use the library, in one call. A scope limit is how many steps the search for the types of one
    /// expression may take, whatever the load of the machine.
    ///
    /// - Returns: The compiler's messages, or `nil` if there is no error, and no warning but that a value is not used.
    func check(_ blocks: [CodeBlock], languageMode: String = "6", scopeLimit: Int? = nil) async throws -> String? {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        // All files by one compiler: ten times as fast, and errors in one do not keep it from the others.
        var arguments = ["-typecheck", "-whole-module-optimization", "-parse-as-library"]
        arguments += ["-swift-version", languageMode, "-module-name", "Documents", "-I", modules.path]
        for module in ["COperationSupport", "CProcessSupport"] {
            arguments += ["-I", "\(BuildProducts.repository.path)/Sources/\(module)/include"]
        }
        if let scopeLimit { arguments += ["-Xfrontend", "-solver-scope-threshold=\(scopeLimit)"] }
        for (index, block) in blocks.enumerated() {
            arguments.append(try folder.file("Block\(index).swift", block.program(number: index)))
        }
        let (status, output) = try await swiftc(arguments, folder: folder)
        let warnings = output.split(separator: "\n").filter { line in
            line.contains(": warning: ") && !line.contains("never used")
        }
        return status == 0 && warnings.isEmpty ? nil : output
    }

    /// Runs the compiler without blocking a thread. Its output goes to a file, so that no pipe can fill up.
    private func swiftc(_ arguments: [String], folder: TemporaryFolder) async throws -> (status: Int32, output: String)
    {
        let log = URL(fileURLWithPath: try folder.file("output-\(UUID().uuidString)", ""))
        let handle = try FileHandle(forWritingTo: log)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        #if os(macOS)
        process.arguments = ["xcrun", "swiftc"] + arguments
        #else
        process.arguments = ["swiftc"] + arguments
        #endif
        process.standardOutput = handle
        process.standardError = handle
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        try handle.close()
        return (status, String(decoding: try Data(contentsOf: log), as: UTF8.self))
    }
}
#endif
