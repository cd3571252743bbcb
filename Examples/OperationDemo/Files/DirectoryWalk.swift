#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The regular files below a directory, one at a time, in the order in which the file system gives them.
///
/// Holds one directory open, and the paths of the directories that are yet to be read, but no files. Symbolic links are not
/// followed, except for the directory to begin with; so links that form a cycle do not matter. Not thread-safe.
@safe final class DirectoryWalk {
    enum Entry: Equatable {
        case file(RawPath)
        /// A directory that cannot be read, or not any more.
        case failure(RawPath, FileError)
    }

    #if canImport(Darwin)
    private typealias Stream = UnsafeMutablePointer<DIR>
    #else
    private typealias Stream = OpaquePointer
    #endif

    private enum Kind {
        case file, directory, other
    }

    private let root: RawPath
    private var pending: [RawPath]
    private var current: (path: RawPath, stream: Stream)?

    init(_ root: RawPath) {
        self.root = root
        pending = [root]
    }

    deinit {
        closeCurrent()
    }

    func next() -> Entry? {
        while true {
            if unsafe current == nil {
                guard let path = pending.popLast() else { return nil }
                if let error = open(path) { return .failure(path, error) }
            }
            if let entry = nextOfCurrent() { return entry }
        }
    }

    /// Opens a directory to go through it. A link that has taken the place of a directory is refused.
    private func open(_ path: RawPath) -> FileError? {
        let noFollow = path == root ? 0 : O_NOFOLLOW
        let descriptor: Int32
        do {
            descriptor = try path.open(O_DIRECTORY | noFollow)
        } catch {
            return error
        }
        guard let stream = unsafe fdopendir(descriptor) else {
            let error = FileError.last
            close(descriptor)
            return error
        }
        unsafe current = (path, stream)
        return nil
    }

    /// The next file of the directory that is open, or its error, or nil at its end.
    private func nextOfCurrent() -> Entry? {
        guard let (path, stream) = unsafe current else { return nil }
        while true {
            // The end of a directory and an error differ in this alone.
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                let error = FileError.last
                closeCurrent()
                return error.code == 0 ? nil : .failure(path, error)
            }
            let name = unsafe Self.name(of: entry)
            if name == Self.dot || name == Self.dotDot { continue }
            let child = path.appending(name)
            switch unsafe Self.kind(of: entry, at: child) {
            case .file: return .file(child)
            case .directory: pending.append(child)
            case .other: break
            }
        }
    }

    private func closeCurrent() {
        if let (_, stream) = unsafe current { unsafe closedir(stream) }
        unsafe current = nil
    }

    private static let dot = Array(".".utf8)
    private static let dotDot = Array("..".utf8)

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8] {
        let field = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { unsafe Array($0) }
        return Array(field.prefix { $0 != 0 })
    }

    private static func kind(of entry: UnsafeMutablePointer<dirent>, at path: RawPath) -> Kind {
        switch unsafe Int(entry.pointee.d_type) {
        case Int(DT_REG): return .file
        case Int(DT_DIR): return .directory
        case Int(DT_UNKNOWN): break
        default: return .other
        }
        // Some file systems do not tell. What has vanished meanwhile is taken for a file, and reported when it is opened.
        guard let mode = try? path.mode(followingLink: false) else { return .file }
        switch mode & S_IFMT {
        case S_IFREG: return .file
        case S_IFDIR: return .directory
        default: return .other
        }
    }
}
