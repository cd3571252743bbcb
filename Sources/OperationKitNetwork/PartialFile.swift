import Foundation

/// The file that a download is written to until it is complete, and what is known of its origin.
///
/// Belongs to one transfer at a time: to the thread that creates it, and then to the queue of the session.
final class PartialFile: @unchecked Sendable {
    private let destination: URL
    /// The destination with its folder, whatever leads there.
    private let place: URL
    private let source: URL?
    private let file: URL
    private let note: URL
    private var handle: FileHandle?
    /// How much is there.
    private(set) var length: Int64 = 0
    /// How the server recognizes what is there; `nil` if it cannot go on.
    private(set) var validator: String?
    /// Whether this download has written what is there, and not an earlier one, perhaps from elsewhere.
    private var hasBegun = false

    /// What is kept beside the part.
    private struct Note: Codable {
        let url: URL?
        let validator: String
    }

    /// Whether this file has the destination, so that it gives it back once.
    private var ownsDestination = false

    private static let lock = NSLock()
    nonisolated(unsafe) private static var inUse: Set<URL> = []

    /// Reads what an earlier download has left.
    ///
    /// - Parameters:
    ///   - destination: Where the complete file is put.
    ///   - source: Where it comes from.
    /// - Throws: An error, if another download is at it, or if it is no place for a file.
    init(for destination: URL, of source: URL?) throws {
        self.destination = destination.standardizedFileURL
        let folder = self.destination.deletingLastPathComponent().resolvingSymlinksInPath()
        place = folder.appendingPathComponent(self.destination.lastPathComponent)
        self.source = source
        file = destination.appendingPathExtension("partial")
        note = destination.appendingPathExtension("partial-note")
        let isFree = Self.lock.withLock { unsafe Self.inUse.insert(place).inserted }
        guard isFree else { throw DownloadError.destinationInUse(destination) }
        ownsDestination = true
        if let code = Self.problem(of: destination) {
            throw DownloadError.cannotWrite(destination, error: POSIXError(code))
        }
        // What else has such a name belongs to others, a link with the file behind it.
        if let other = [file, note].first(where: { !Self.isFreeForFile($0) }) {
            throw DownloadError.cannotWrite(other, error: POSIXError(.EEXIST))
        }
        guard let data = try? Data(contentsOf: note), let known = try? JSONDecoder().decode(Note.self, from: data),
            known.url == source,
            let size = try? FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber
        else { return }
        validator = known.validator
        length = size.int64Value
    }

    deinit { release() }

    /// What would keep a complete file from being put there.
    private static func problem(of destination: URL) -> POSIXErrorCode? {
        guard destination.isFileURL else { return .EINVAL }
        var status = stat()
        // Behind a symbolic link, too: that of `/dev/stdout` leads to what is no file.
        guard unsafe stat(destination.path, &status) == 0 else { return nil }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return nil
        case S_IFDIR: return .EISDIR
        // A device or a pipe would be replaced by a file, for all who use it.
        default: return .EOPNOTSUPP
        }
    }

    /// Whether there is nothing, or a file. A link is neither.
    private static func isFreeForFile(_ url: URL) -> Bool {
        var status = stat()
        return unsafe lstat(url.path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    /// Removes a file, and nothing else.
    private static func remove(_ url: URL) {
        unsafe unlink(url.path)
    }

    private func release() {
        guard exchange(&ownsDestination, with: false) else { return }
        _ = Self.lock.withLock { unsafe Self.inUse.remove(place) }
    }

    /// Forgets what is there, because the whole comes.
    ///
    /// - Parameter validator: How the server recognizes it, if it can.
    /// - Throws: An error, if the file cannot be written.
    func begin(validator: String?) throws {
        try? handle?.close()
        handle = nil
        length = 0
        self.validator = validator
        try write {
            // In this order, so that a program that ends in between leaves no note about another content.
            Self.remove(note)
            try Data().write(to: file)
            hasBegun = true
            if let validator { try JSONEncoder().encode(Note(url: source, validator: validator)).write(to: note) }
        }
    }

    /// Adds what comes next.
    func append(_ data: Data) throws {
        try write {
            if handle == nil {
                handle = try FileHandle(forWritingTo: file)
                try handle?.seek(toOffset: UInt64(length))
            }
            try handle?.write(contentsOf: data)
        }
        length += Int64(data.count)
    }

    /// The download is complete.
    func moveToDestination() throws {
        try write {
            try handle?.close()
            handle = nil
            // An empty body has written nothing. Any other file has been removed meanwhile if it is not there.
            if length == 0, !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
            if unsafe rename(file.path, destination.path) != 0 {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
            Self.remove(note)
        }
        release()
    }

    /// The download has ended before it was complete, or the server has nothing to put there. What an earlier one has left stays.
    func stop() {
        if hasBegun, validator == nil {
            Self.remove(file)
            Self.remove(note)
        }
        try? handle?.close()
        handle = nil
        release()
    }

    private func write(_ body: () throws -> Void) throws {
        do { try body() } catch { throw DownloadError.cannotWrite(destination, error: error) }
    }
}

extension URL {
    /// A URL without a scheme as that of the file at its path, which is what Foundation reads and writes; others as they are.
    var asFile: URL { scheme == nil ? URL(fileURLWithPath: path) : self }

    /// How messages call it: the path of a file, or the whole URL.
    var place: String { isFileURL ? path : absoluteString }
}
