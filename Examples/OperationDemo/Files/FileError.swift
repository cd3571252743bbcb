import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

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
