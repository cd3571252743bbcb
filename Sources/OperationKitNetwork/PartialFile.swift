import Foundation

/// The file that a download is written to until it is complete, and what is known of its origin.
///
/// Belongs to one transfer at a time: to the thread that creates it, and then to the queue of the session. As long as it
/// does, it is open and locked, so that no other transfer, of any process, writes to it. Until it is complete, only its user
/// can read it.
final class PartialFile: @unchecked Sendable {
    private let destination: URL
    /// The destination, or the file behind a symbolic link.
    private let place: URL
    private let origin: UInt64
    private let file: URL
    private let note: URL
    private let handle: FileHandle
    /// How much is there.
    private(set) var length: Int64 = 0
    /// How the server recognizes what is there; `nil` if it cannot go on.
    private(set) var validator: String?
    /// Whether nothing is there that an earlier download has left.
    private var isOwn: Bool

    /// What is kept beside the part.
    struct Note: Codable {
        /// A digest of the URL, which may have a password or a signature in it. If two URLs have the same digest, which is
        /// unlikely, the validator tells their files apart.
        let origin: UInt64
        let validator: String

        init(origin: URL?, validator: String) {
            self.init(origin: Self.digest(of: origin), validator: validator)
        }

        fileprivate init(origin: UInt64, validator: String) {
            (self.origin, self.validator) = (origin, validator)
        }

        /// FNV-1a. A `Hasher` has another seed in each process.
        fileprivate static func digest(of url: URL?) -> UInt64 {
            (url?.absoluteString ?? "").utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        }
    }

    /// Reads what an earlier download has left.
    ///
    /// - Parameters:
    ///   - destination: Where the complete file is put.
    ///   - source: Where it comes from.
    /// - Throws: An error, if another download is at it, or if it is no place for a file.
    init(for destination: URL, of source: URL?) throws {
        self.destination = destination
        origin = Note.digest(of: source)
        if let code = Self.problem(of: destination) {
            throw DownloadError.cannotWrite(destination, error: POSIXError(code))
        }
        place = Self.place(of: destination)
        file = place.appendingPathExtension("partial")
        note = place.appendingPathExtension("partial-note")
        // What else has such a name belongs to others, a link with the file behind it.
        var status = stat()
        if unsafe lstat(note.path, &status) == 0, !Self.isOwnFile(status, at: note) {
            throw DownloadError.cannotWrite(note, error: POSIXError(.EEXIST))
        }
        handle = try Self.locked(file, for: destination)
        let size = try handle.seekToEnd()
        isOwn = size == 0
        guard !isOwn, let data = try? Self.opened(note, O_RDONLY).readToEnd(),
            let known = try? JSONDecoder().decode(Note.self, from: data), known.origin == origin
        else { return }
        validator = known.validator
        length = Int64(size)
    }

    // MARK: - Places

    /// What would keep a complete file from being put there.
    private static func problem(of destination: URL) -> POSIXErrorCode? {
        guard destination.isFileURL else { return .EINVAL }
        // Behind a symbolic link, too: that of `/dev/stdout` leads to what is no file.
        // The system may forbid to follow the link of another user.
        guard let status = status(of: destination) else { return errno == ENOENT ? nil : lastCode }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return nil
        case S_IFDIR: return .EISDIR
        // A device or a pipe would be replaced by a file, for all who use it.
        default: return .EOPNOTSUPP
        }
    }

    /// The destination, or the file that it names as a symbolic link, which may be missing.
    private static func place(of destination: URL) -> URL {
        var place = destination.absoluteURL
        // As many links as Linux follows.
        for _ in 0..<40 {
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: place.path) else { break }
            let folder = place.deletingLastPathComponent()
            place = target.hasPrefix("/") ? URL(fileURLWithPath: target) : folder.appendingPathComponent(target)
        }
        // Where nothing is there, a `..` after a link would become the folder of the link.
        return status(of: place) == nil ? place : place.resolvingSymlinksInPath()
    }

    private static func status(of file: URL) -> stat? {
        var status = stat()
        return unsafe stat(file.path, &status) == 0 ? status : nil
    }

    // MARK: - Files

    /// Opens a file of this user, and neither a link nor anything else.
    private static func opened(_ url: URL, _ flags: Int32, mode: mode_t = 0o600) throws(POSIXError) -> FileHandle {
        // A named pipe is not waited for.
        let number = aboveStandardStreams(unsafe open(url.path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode))
        guard number >= 0 else { throw POSIXError(errno == ELOOP ? .EEXIST : lastCode) }
        let handle = FileHandle(fileDescriptor: number, closeOnDealloc: true)
        guard let status = status(of: handle), isOwnFile(status, at: url) else { throw POSIXError(.EEXIST) }
        return handle
    }

    /// Whether it is a file that belongs to this user and has no other name. What has just been moved or removed may have none.
    private static func isOwnFile(_ status: stat, at url: URL) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_nlink <= 1
            && (status.st_uid == geteuid() || status.st_uid == ownerOfNewFile(beside: url))
    }

    /// The owner of a file that is created here: another user, where a file system is shared or has no users.
    private static func ownerOfNewFile(beside url: URL) -> uid_t? {
        let path = url.deletingLastPathComponent().appendingPathComponent(UUID().uuidString).path
        let number = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { return nil }
        defer { unsafe unlink(path) }
        return status(of: FileHandle(fileDescriptor: number, closeOnDealloc: true))?.st_uid
    }

    private static var lastCode: POSIXErrorCode { POSIXErrorCode(rawValue: errno) ?? .EIO }

    private static func status(of handle: FileHandle) -> stat? {
        var status = stat()
        return unsafe fstat(handle.fileDescriptor, &status) == 0 ? status : nil
    }

    /// Opens a part, which is created if there is none, and keeps other downloads from it until it is closed.
    private static func locked(_ file: URL, for destination: URL) throws(DownloadError) -> FileHandle {
        // As often as others may come in between.
        for _ in 0..<100 {
            let handle: FileHandle
            do { handle = try opened(file, O_RDWR | O_CREAT) } catch { throw .cannotWrite(file, error: error) }
            // Some file systems have no locks.
            if flock(handle.fileDescriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
                throw .destinationInUse(destination)
            }
            // Otherwise another download has just moved it to the destination, or removed it.
            if isSame(handle, file) {
                fchmod(handle.fileDescriptor, 0o600)
                return handle
            }
        }
        throw .destinationInUse(destination)
    }

    /// Whether a path leads to an open file.
    private static func isSame(_ handle: FileHandle, _ file: URL) -> Bool {
        var found = stat()
        guard let own = status(of: handle), unsafe lstat(file.path, &found) == 0 else { return false }
        return own.st_dev == found.st_dev && own.st_ino == found.st_ino
    }

    /// The mode of a new file; `nil` if none can be created here. The mask of the process can't be read without a change for all
    /// threads.
    private var newFileMode: mode_t? {
        guard let file = try? Self.opened(note, O_WRONLY | O_CREAT | O_EXCL, mode: 0o666) else { return nil }
        defer { Self.remove(note) }
        return Self.status(of: file)?.st_mode
    }

    /// Removes a file, and nothing else.
    private static func remove(_ url: URL) {
        unsafe unlink(url.path)
    }

    // MARK: - The transfer

    /// Forgets what is there, because the whole comes.
    ///
    /// - Parameter validator: How the server recognizes it, if it can.
    /// - Throws: An error, if the file cannot be written.
    func begin(validator: String?) throws {
        (length, self.validator) = (0, nil)
        try write {
            // In this order, so that a program that ends in between leaves no note about another content.
            Self.remove(note)
            try handle.truncate(atOffset: 0)
            isOwn = true
            // Without a note, a part is not kept.
            if let validator { try makeNote(validator) }
            self.validator = validator
        }
    }

    private func makeNote(_ validator: String) throws {
        let handle = try Self.opened(note, O_WRONLY | O_CREAT | O_EXCL)
        try handle.write(contentsOf: JSONEncoder().encode(Note(origin: origin, validator: validator)))
        try handle.close()
    }

    /// Adds what comes next.
    func append(_ data: Data) throws {
        try write { try handle.write(contentsOf: data) }
        length += Int64(data.count)
    }

    /// The download is complete.
    func moveToDestination() throws {
        try write {
            guard Self.isSame(handle, file) else { throw POSIXError(.ENOENT) }
            Self.remove(note)
            // Otherwise only the user can read it, which is better than to lose it.
            if let mode = Self.status(of: place)?.st_mode ?? newFileMode {
                fchmod(handle.fileDescriptor, mode & 0o777)
            }
            // The file system of a network says only at a close that it is full. The file stays open, and locked, until
            // it has its name.
            let copy = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
            if copy >= 0, Foundation.close(copy) != 0 { throw POSIXError(Self.lastCode) }
            if unsafe rename(file.path, place.path) != 0 {
                let error = POSIXError(Self.lastCode)
                // A part again, with its note. That was removed before, while no other download could have one here.
                fchmod(handle.fileDescriptor, 0o600)
                if let validator { try? makeNote(validator) }
                throw error
            }
        }
        close()
    }

    /// The download has ended before it was complete, or the server has nothing to put there. What an earlier one has left stays.
    func stop() {
        if isOwn, validator == nil, Self.isSame(handle, file) {
            // The note first: once the file is gone, another download may have its own.
            Self.remove(note)
            Self.remove(file)
        }
        close()
    }

    private func close() {
        // A program that another thread is just starting has the descriptor, too, until it begins, and would keep the
        // lock.
        flock(handle.fileDescriptor, LOCK_UN)
        try? handle.close()
    }

    private func write(_ body: () throws -> Void) throws {
        do { try body() } catch { throw DownloadError.cannotWrite(destination, error: error) }
    }
}

extension URL {
    /// The URL of the file at its path, also if it has no scheme; others as they are. Foundation has two paths for the URL of a file with
    /// a `%2F` or `%00` in it.
    var asFile: URL { scheme == nil || isFileURL ? URL(fileURLWithPath: path) : self }

    /// How messages call it: the path of a file, or the whole URL.
    var place: String { isFileURL ? path : absoluteString }
}

/// Where standard streams were closed, a file gets the number of one, and what the program writes there would get into it.
private func aboveStandardStreams(_ number: Int32) -> Int32 {
    guard STDIN_FILENO...STDERR_FILENO ~= number else { return number }
    defer { close(number) }
    return fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
}
