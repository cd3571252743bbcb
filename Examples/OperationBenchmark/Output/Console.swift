import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Standard output for what was found, standard error for everything else.
enum Console {
    /// - Throws: ``OutputError`` if the lines cannot be written.
    static func print(_ lines: [String]) throws(OutputError) {
        try write(lines.map { $0 + "\n" }.joined())
    }

    /// Writes text as it is.
    static func write(_ text: String) throws(OutputError) {
        do {
            try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
        } catch {
            throw OutputError(reason: error.localizedDescription)
        }
    }

    /// Checks that there is a standard output, before anything else is opened in its place.
    static func requireOutput() throws(OutputError) {
        if fcntl(STDOUT_FILENO, F_GETFD) == -1 { throw OutputError(reason: "It is closed.") }
    }

    /// Writes a line to standard error.
    static func complain(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Says on a terminal what is being measured, in place of what was said before.
    static func progress(_ text: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        try? FileHandle.standardError.write(contentsOf: Data(("\r\u{1B}[K" + text).utf8))
    }
}

/// Standard output cannot be written, so what was found is lost.
struct OutputError: LocalizedError {
    let reason: String

    var errorDescription: String? { "Standard output cannot be written. \(reason)" }
}
