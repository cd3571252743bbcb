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
    /// - Returns: An absolute path, as the bytes that the system has, which need not be text, with a NUL character at the end.
    /// - Throws: An error, if there is no such program, or none that may be executed. Relative paths lead nowhere if the current
    ///   directory was removed.
    static func path(of name: String, environment: [String: String]?, command: String) throws(ProcessError) -> [CChar] {
        let (slash, bytes) = (CChar(0x2f), Array(name.utf8CString))
        let current = currentDirectory
        func absolute(_ path: some Collection<CChar>) -> [CChar]? {
            path.first == slash ? Array(path) : current.isEmpty ? nil : current + [slash] + path
        }
        if bytes.contains(slash) {
            guard let path = absolute(bytes) else { throw .notFound(command: command) }
            if !isAllowed(path, F_OK), case let code = errno {
                let isMissing = code == ENOENT || code == ENOTDIR
                throw isMissing ? .notFound(command: command) : .launchFailed(command: command, code: code)
            }
            guard isExecutable(path) else { throw .notExecutable(command: command, path: text(path)) }
            return path
        }
        let own = unsafe getenv("PATH").map { unsafe Self.bytes($0) }
        let list = environment?["PATH"].map { Self.bytes($0) } ?? own ?? Self.bytes("/usr/bin:/bin")
        var refused: [CChar]?
        for folder in list.split(separator: CChar(0x3a), omittingEmptySubsequences: false) where !name.isEmpty {
            // The program may run in another directory.
            guard let path = absolute(folder).map({ $0 + [slash] + bytes }) else { continue }
            if isExecutable(path) { return path }
            if refused == nil, kind(of: path) != nil { refused = path }
        }
        if let refused { throw .notExecutable(command: command, path: text(refused)) }
        throw .notFound(command: command)
    }

    /// Throws an error unless a directory exists.
    static func check(directory: URL, command: String) throws(ProcessError) {
        guard directory.isLocal, kind(of: Array(directory.path.utf8CString)) == S_IFDIR else {
            throw .invalidDirectory(
                command: command, directory: directory.isLocal ? directory.path : directory.absoluteString)
        }
    }

    /// Throws an error if one of the strings would be cut by the system.
    static func check(_ strings: some Sequence<String>, command: String) throws(ProcessError) {
        for string in strings where string.utf8.contains(0) {
            throw .invalidArgument(command: command, argument: CommandLine.description(of: string, []))
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

    private static func isExecutable(_ path: [CChar]) -> Bool { isAllowed(path, X_OK) && kind(of: path) == S_IFREG }

    /// Whether this process may do this with a file. As at the start, its effective user counts, not the real one.
    private static func isAllowed(_ path: [CChar], _ mode: Int32) -> Bool {
        unsafe faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0
    }

    /// What is there: a file, a directory, or something else.
    private static func kind(of path: [CChar]) -> mode_t? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// Empty if it was removed.
    private static var currentDirectory: [CChar] {
        guard let path = unsafe getcwd(nil, 0) else { return [] }
        defer { unsafe free(path) }
        return unsafe bytes(path)
    }

    private static func bytes(_ text: String) -> [CChar] { Array(text.utf8CString.dropLast()) }

    private static func bytes(_ string: UnsafePointer<CChar>) -> [CChar] {
        unsafe Array(UnsafeBufferPointer(start: string, count: strlen(string)))
    }

    private static func text(_ path: [CChar]) -> String {
        String(decoding: path.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }
}

extension URL {
    /// Whether the path of the URL is one of this system.
    var isLocal: Bool { isFileURL || scheme == nil }
}
#endif
