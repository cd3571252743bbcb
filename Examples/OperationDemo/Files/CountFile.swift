import Dispatch
import Foundation
import OperationKit

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What was counted in a file.
struct FileCount: Equatable, Sendable {
    let path: String
    let lines: Int
    let words: Int
    let bytes: Int
    let checksum: UInt32
}

/// Reads a file and counts what is in it, without occupying a thread of its queue.
///
/// One chunk is in memory at a time, and the file is closed before the operation finishes. So a queue's width is also the
/// limit for open files.
final class CountFile: AsyncOperation, @unchecked Sendable {
    private static let chunkSize = 1 << 16
    /// How much is read before other files have their turn; also how soon a cancellation is noticed.
    private static let share = 16 * chunkSize

    /// Where files are read. `DispatchIO` reads regular files in the same way, on threads of its own, but with so many
    /// changes of queues for each that 100,000 small files took ten times as long.
    private static let reading = DispatchQueue(label: "OperationDemo.CountFile", attributes: .concurrent)

    private let path: RawPath
    private let knownFailure: FileError?
    private let lock = NSLock()
    private var counted: FileCount?

    /// Creates an operation for one file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - failure: An error that is known already: the operation ends with it, so that one report has them all.
    init(_ path: RawPath, failure: FileError? = nil) {
        self.path = path
        knownFailure = failure
        super.init()
        name = path.text
    }

    /// What was counted, if the operation ended with success.
    var count: FileCount? {
        lock.withLock { counted }
    }

    override func main() {
        if let knownFailure {
            finish(withError: knownFailure)
        } else {
            Self.reading.async { [self] in begin() }
        }
    }

    private func begin() {
        do {
            let descriptor = try open()
            proceed(with: descriptor, TextCounter())
        } catch {
            finish(withError: error)
        }
    }

    private func open() throws(FileError) -> Int32 {
        let descriptor = try path.open(O_NOFOLLOW)
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .noRegularFile
        }
        return descriptor
    }

    private func proceed(with descriptor: Int32, _ counter: TextCounter) {
        var counter = counter
        let pause = counter.bytes + Self.share
        do {
            while let chunk = try nextChunk(of: descriptor) {
                counter.count(chunk)
                if isCancelled { throw CancellationError() }
                if counter.bytes >= pause {
                    Self.reading.async { [self, counter] in proceed(with: descriptor, counter) }
                    return
                }
            }
        } catch {
            close(descriptor)
            finish(withError: error)
            return
        }
        close(descriptor)
        let count = FileCount(
            path: path.text, lines: counter.lines, words: counter.words, bytes: counter.bytes,
            checksum: counter.checksum)
        lock.withLock { counted = count }
        finish()
    }

    /// Returns nil at the end of the file.
    private func nextChunk(of descriptor: Int32) throws(FileError) -> [UInt8]? {
        while true {
            var failure: FileError?
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: Self.chunkSize) { buffer, count in
                let result = unsafe read(descriptor, buffer.baseAddress, buffer.count)
                if result < 0 { failure = .last }
                count = max(0, result)
            }
            guard let failure else { return chunk.isEmpty ? nil : chunk }
            if failure.code != EINTR { throw failure }
        }
    }
}
