#if os(macOS) || os(Linux)
import Foundation

/// Finds out what can be known to be wrong before anything is started.
enum ExecutableSearch {
    /// Returns the path of a program.
    ///
    /// - Parameters:
    ///   - name: A name, which is looked up in `PATH`, or a path with a slash, relative to the current directory of this process.
    ///   - environment: The environment of the program, whose `PATH` counts, if it has one; `nil` for that of this process.
    ///   - command: What errors call the program.
    /// - Returns: An absolute path.
    /// - Throws: An error, if there is no such program, or none that may be executed. Relative paths lead nowhere if the current
    ///   directory was removed.
    static func path(of name: String, environment: [String: String]?, command: String) throws(ProcessError) -> String {
        let current = FileManager.default.currentDirectoryPath
        func absolute(_ path: String) -> String? {
            path.hasPrefix("/") ? path : current.isEmpty ? nil : "\(current)/\(path)"
        }
        if name.contains("/") {
            guard let path = absolute(name) else { throw .notFound(command: command) }
            if unsafe access(path, F_OK) != 0, case let code = errno {
                let isMissing = code == ENOENT || code == ENOTDIR
                throw isMissing ? .notFound(command: command) : .launchFailed(command: command, code: code)
            }
            guard isExecutable(path) else { throw .notExecutable(command: command, path: path) }
            return path
        }
        let list = environment?["PATH"] ?? ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        var refused: String?
        for folder in list.split(separator: ":", omittingEmptySubsequences: false) where !name.isEmpty {
            // The program may run in another directory.
            guard let path = absolute(String(folder)).map({ $0 + "/" + name }) else { continue }
            if isExecutable(path) { return path }
            if refused == nil, FileManager.default.fileExists(atPath: path) { refused = path }
        }
        if let refused { throw .notExecutable(command: command, path: refused) }
        throw .notFound(command: command)
    }

    /// Throws an error unless a directory exists.
    static func check(directory: URL, command: String) throws(ProcessError) {
        guard directory.isLocal, kind(of: directory.path) == S_IFDIR else {
            throw .invalidDirectory(
                command: command, directory: directory.isLocal ? directory.path : directory.absoluteString)
        }
    }

    /// Throws an error if one of the strings would be cut by the system.
    static func check(_ strings: some Sequence<String>, command: String) throws(ProcessError) {
        for string in strings where string.utf8.contains(0) {
            throw .invalidArgument(command: command, argument: string.replacing("\0", with: "\\0"))
        }
    }

    /// Throws an error if a variable could not be set as it is. Its value may be a secret, so the error has only the name.
    static func check(environment: [String: String], command: String) throws(ProcessError) {
        for (name, value) in environment {
            let isName = !name.isEmpty && !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "=") }
            if !isName || value.utf8.contains(0) {
                throw .invalidVariable(command: command, name: name.replacing("\0", with: "\\0"))
            }
        }
    }

    private static func isExecutable(_ path: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: path) && kind(of: path) == S_IFREG
    }

    /// What is there: a file, a directory, or something else.
    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }
}

extension URL {
    /// Whether the path of the URL is one of this system.
    var isLocal: Bool { isFileURL || scheme == nil }
}
#endif
