#if os(Linux) || os(macOS)
import OperationKitTestSupport

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

    /// Checks blocks that use the library, in one call.
    ///
    /// - Parameters:
    ///   - blocks: The code.
    ///   - languageMode: The version of the language.
    ///   - scopeLimit: How many steps the search for the types of one expression may take, instead of the compiler's own
    ///     limit. Whatever the load of the machine, they are as many.
    /// - Returns: The compiler's messages, or `nil` if there is no error, and no warning but that a value is not used.
    /// - Throws: An error, if the compiler could not be run.
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

    /// Checks a package manifest against the package manager's library, in the version that it asks for.
    ///
    /// - Returns: The compiler's messages, or `nil` if there is no error.
    func check(manifest: CodeBlock) async throws -> String? {
        let folder = TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let location = "#sourceLocation(file: \"\(manifest.file)\", line: \(manifest.line))"
        let file = try folder.file("Package.swift", ([location] + manifest.code).joined(separator: "\n"))
        let version = manifest.code.first?.split(separator: " ").last.map(String.init) ?? ""
        let arguments = [
            "-typecheck", "-swift-version", "6", "-package-description-version", version,
            "-I", try await toolchainLibraries(folder).appendingPathComponent("pm/ManifestAPI").path, file,
        ]
        let (status, output) = try await swiftc(arguments, folder: folder)
        return status == 0 ? nil : output
    }

    private func toolchainLibraries(_ folder: TemporaryFolder) async throws -> URL {
        struct Info: Decodable {
            struct Paths: Decodable { let runtimeResourcePath: String }
            let paths: Paths
        }
        let (_, output) = try await swiftc(["-print-target-info"], folder: folder)
        let info = try JSONDecoder().decode(Info.self, from: Data(output.utf8))
        return URL(fileURLWithPath: info.paths.runtimeResourcePath)
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
