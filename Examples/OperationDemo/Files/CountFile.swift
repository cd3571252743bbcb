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

    private let path: RawPath
    private let knownFailure: FileError?
    private let reading = DispatchQueue(label: "OperationDemo.CountFile")
    private var channel: DispatchIO?
    // Used on the queue `reading` alone.
    private var counter = TextCounter()
    private var failure: (any Error)?
    private let lock = NSLock()
    private var counted: FileCount?

    /// - Parameter failure: An error that is known already: the operation ends with it, so that one report has them all.
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
            return
        }
        let descriptor: Int32
        do {
            descriptor = try path.open(O_NOFOLLOW)
        } catch {
            finish(withError: error)
            return
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            finish(withError: FileError.noRegularFile)
            return
        }
        let channel = DispatchIO(type: .stream, fileDescriptor: descriptor, queue: reading) { [self] _ in
            close(descriptor)
            conclude()
        }
        self.channel = channel
        reading.async { [self] in read(from: channel) }
    }

    override func didCancel() {
        channel?.close(flags: .stop)
    }

    /// Reads a chunk, and then the next: one at a time, so that reading does not run ahead of counting.
    private func read(from channel: DispatchIO) {
        var received = 0
        channel.read(offset: 0, length: Self.chunkSize, queue: reading) { [self] isDone, data, error in
            if let data, !data.isEmpty {
                received += data.count
                counter.count(Array(data))
            }
            guard isDone else { return }
            if error == 0 && received == Self.chunkSize {
                read(from: channel)
            } else {
                if error == ECANCELED {
                    failure = CancellationError()
                } else if error != 0 {
                    failure = FileError(code: error)
                }
                channel.close()
            }
        }
    }

    private func conclude() {
        if failure == nil {
            let count = FileCount(
                path: path.text, lines: counter.lines, words: counter.words, bytes: counter.bytes,
                checksum: counter.checksum)
            lock.withLock { counted = count }
        }
        finish(withError: failure)
    }
}
