import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A path as the file system knows it: bytes, which need not be UTF-8.
struct RawPath: Hashable, Sendable {
    private let bytes: [UInt8]

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The path of an entry of this directory.
    func appending(_ name: some Sequence<UInt8>) -> RawPath {
        RawPath(bytes: (bytes.last == UInt8(ascii: "/") ? bytes : bytes + [UInt8(ascii: "/")]) + name)
    }

    /// The path for people: what is no UTF-8 is replaced, and control characters are spelled out.
    var text: String {
        String(decoding: bytes, as: UTF8.self).printable
    }

    /// Opens what is there for reading, without ever waiting: for a pipe that has taken the place of a file, for example.
    ///
    /// - Returns: A descriptor, which the caller has to close.
    func open(_ flags: Int32) throws(FileError) -> Int32 {
        let descriptor = unsafe withCString { unsafe systemOpen($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags) }
        if descriptor < 0 { throw .last }
        return descriptor
    }

    /// What is there: the `st_mode` of what the path leads to, or of the link itself.
    func mode(followingLink: Bool) throws(FileError) -> mode_t {
        var status = stat()
        let result = unsafe withCString { path in
            unsafe followingLink ? stat(path, &status) : lstat(path, &status)
        }
        if result != 0 { throw .last }
        return status.st_mode
    }

    private func withCString(_ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
        let terminated = bytes.map { CChar(bitPattern: $0) } + [0]
        return unsafe terminated.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
    }
}

/// `open(2)`, which the method of that name hides.
private func systemOpen(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    unsafe open(path, flags)
}

/// What the system said when a file or directory could not be read.
struct FileError: Error, LocalizedError, Equatable {
    let code: Int32

    /// The error of the call that has just failed on this thread.
    static var last: FileError {
        FileError(code: errno)
    }

    /// Something else has taken the place of a file. No error of the system's: those are positive.
    static let noRegularFile = FileError(code: -1)

    var errorDescription: String? {
        if self == .noRegularFile { return "No regular file any more" }
        return unsafe strerror(code).map { unsafe String(cString: $0) } ?? "Error \(code)"
    }
}
