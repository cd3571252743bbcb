import Foundation
import OperationKit
import OperationKitTimelines

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The files that `--svg` and `--trace` ask for.
///
/// A file is complete, or not there: it is written under another name first. What it replaces stays until then.
struct OutputFiles: Sendable {
    let svg: String?
    let trace: String?

    init(_ options: Options) {
        (svg, trace) = (options.svg, options.trace)
    }

    var isEmpty: Bool { svg == nil && trace == nil }

    /// Finds out whether the files can be written, as far as that can be known before, without creating them.
    func check() throws(OutputError) {
        for path in [svg, trace].compactMap(\.self) {
            if path.isEmpty { throw OutputError(path: path, reason: FileError(code: ENOENT).localizedDescription) }
            if let kind = Self.kind(of: path) {
                if kind == S_IFDIR { throw OutputError(path: path, code: EISDIR) }
                if unsafe access(path, W_OK) != 0 { throw OutputError(path: path, code: errno) }
                if kind != S_IFREG { continue }
            }
            let directory = Self.target(of: path).deletingLastPathComponent().path
            if let kind = Self.kind(of: directory), kind != S_IFDIR { throw OutputError(path: path, code: ENOTDIR) }
            if unsafe access(directory, W_OK | X_OK) != 0 { throw OutputError(path: path, code: errno) }
        }
    }

    /// Draws a timeline into the files.
    ///
    /// - Parameters:
    ///   - timeline: What to draw.
    ///   - title: The title of the drawing.
    /// - Throws: Why one of them could not be written. It is as it was before.
    func write(_ timeline: OperationTimeline, title: String) throws(OutputError) {
        if let svg { try Self.write(timeline.svg(title: title), to: svg) }
        if let trace { try Self.write(timeline.chromeTrace, to: trace) }
    }

    private static func write(_ text: String, to path: String) throws(OutputError) {
        let isSpecial = kind(of: path).map { $0 != S_IFREG } ?? false
        do {
            // Pipes and devices are written to; they must not be replaced. Links to those of a process lead nowhere.
            try Data(text.utf8).write(
                to: isSpecial ? URL(fileURLWithPath: path) : target(of: path), options: isSpecial ? [] : .atomic)
        } catch {
            guard let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError else {
                throw OutputError(path: path, reason: error.localizedDescription)
            }
            throw OutputError(path: path, code: underlying.code.rawValue)
        }
    }

    /// What is at the end of links, which need not be there: the file is replaced, not a link to it.
    private static func target(of path: String) -> URL {
        var url = URL(fileURLWithPath: path)
        // As many links as the system follows. If there are more, it is said when the file is written.
        for _ in 0..<40 {
            guard let next = try? FileManager.default.destinationOfSymbolicLink(atPath: url.path) else { break }
            url = URL(fileURLWithPath: next, relativeTo: url.deletingLastPathComponent()).absoluteURL
        }
        return url
    }

    /// The kind of a file, at the end of links; `nil` if there is none.
    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }
}

/// Why a file cannot be written.
struct OutputError: Error, Equatable {
    let path: String
    let reason: String

    init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    init(path: String, code: Int32) {
        self.init(path: path, reason: FileError(code: code).localizedDescription)
    }
}
