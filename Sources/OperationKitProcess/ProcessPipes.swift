#if os(macOS) || os(Linux)
import CProcessSupport
import Foundation

/// A file descriptor that is closed when it is released, unless it is borrowed.
final class Descriptor: Sendable {
    let number: Int32
    private let isBorrowed: Bool

    init(_ number: Int32) {
        self.number = number
        isBorrowed = false
    }

    init(borrowing number: Int32) {
        self.number = number
        isBorrowed = true
    }

    convenience init(opening path: String, _ flags: Int32, command: String) throws(ProcessError) {
        let number = unsafe ok_open(path, flags)
        guard number >= 0 else { throw .invalidOutput(command: command, path: path, code: -number) }
        self.init(number)
    }

    /// Whether both have opened one file, by whatever path.
    func isSameFile(as other: Descriptor) -> Bool {
        var (own, others) = (stat(), stat())
        guard unsafe fstat(number, &own) == 0, unsafe fstat(other.number, &others) == 0 else { return false }
        return own.st_dev == others.st_dev && own.st_ino == others.st_ino
    }

    deinit {
        if !isBorrowed { close(number) }
    }
}

/// Both ends of a pipe.
struct Pipe {
    let reading: Descriptor
    let writing: Descriptor

    /// - Parameters:
    ///   - ourEnd: The end that is not the program's: 0 for reading and 1 for writing. It does not block.
    ///   - command: What errors call the program.
    /// - Throws: An error, if there are too many open files.
    init(ourEnd: Int32, command: String) throws(ProcessError) {
        var numbers: [Int32] = [-1, -1]
        let code = unsafe numbers.withUnsafeMutableBufferPointer { unsafe ok_pipe($0.baseAddress, ourEnd) }
        guard code == 0 else { throw .launchFailed(command: command, code: code) }
        reading = Descriptor(numbers[0])
        writing = Descriptor(numbers[1])
    }
}

/// The standard input of a program, and what has not been written to it.
struct InputPipe {
    let descriptor: Descriptor
    private let data: Data
    private(set) var written = 0
    /// Why the system did not take the rest.
    private(set) var error: Int32?

    init(descriptor: Descriptor, data: Data) {
        self.descriptor = descriptor
        self.data = data
    }

    /// Writes what the pipe takes, once: a program that reads as fast as this writes must not hold up the others.
    ///
    /// - Returns: Whether there is more to write. A program that does not read its input is no error.
    mutating func write() -> Bool {
        // macOS refuses 2^31 bytes and more.
        let length = min(data.count - written, 1 << 20)
        let count = unsafe data.withUnsafeBytes { bytes in
            unsafe Foundation.write(descriptor.number, bytes.baseAddress! + written, length)
        }
        guard count > 0 else {
            let code = errno
            if code == EAGAIN || code == EINTR { return true }
            if code != EPIPE { error = code }
            return false
        }
        written += count
        return written < data.count
    }
}

/// How long lines go to the closures of a program. Can be used on any thread.
final class LineDelivery: @unchecked Sendable {
    private let lock = NSLock()
    private var end: ContinuousClock.Instant?

    var isOver: Bool { lock.withLock { end.map { $0 <= .now } ?? false } }

    /// Ends it after some time, unless it ends before.
    func end(after time: Duration) {
        let end = ContinuousClock.now + max(time, .zero)
        lock.withLock { self.end = min(self.end ?? end, end) }
    }
}

/// The standard output or standard error of a program.
final class OutputPipe: @unchecked Sendable {
    /// 0 for standard output, 1 for standard error.
    let stream: Int
    private(set) var descriptor: Descriptor?
    private(set) var captured = Data()
    private(set) var exceededLimit: Int?
    private var destination: ProcessOutputDestination.Kind
    private let queue: DispatchQueue
    private let delivery: LineDelivery
    /// The last bytes, for the error of a program that fails. One more than the tail has shows that something was cut.
    private var lastBytes = Data()
    private static let tailLength = 4_096
    /// Whether the handler has not taken what has come. The pipe is not read meanwhile.
    private(set) var isHandlerBusy = false
    /// What the program itself has written and what has not been read. Known once it has exited.
    private var unreadCount: Int?
    private let splitter = LineSplitter()

    init(
        descriptor: Descriptor, stream: Int, _ destination: ProcessOutputDestination, _ queue: DispatchQueue,
        _ delivery: LineDelivery
    ) {
        self.descriptor = descriptor
        self.stream = stream
        self.destination = destination.kind
        self.queue = queue
        self.delivery = delivery
    }

    /// Reads what there is, once.
    ///
    /// - Parameters:
    ///   - buffer: Room for it.
    ///   - taken: Called on another thread when the handler has taken it; ``handlerReturned()`` is to be called then.
    /// - Returns: Whether more may come.
    func read(into buffer: inout [UInt8], taken: @escaping @Sendable () -> Void) -> Bool {
        guard let descriptor else { return false }
        let count = unsafe buffer.withUnsafeMutableBytes {
            unsafe Foundation.read(descriptor.number, $0.baseAddress, $0.count)
        }
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return true }
            close(taken)
            return false
        }
        let ownCount = min(count, unreadCount ?? count)
        unreadCount = unreadCount.map { $0 - ownCount }
        if take(Data(buffer[..<count]), ownCount: ownCount, taken) { return true }
        close(taken)
        return false
    }

    private func close(_ taken: @escaping @Sendable () -> Void) {
        descriptor = nil
        unreadCount = 0
        end(taken)
    }

    /// Whether there is something that must be taken before the program is over.
    var isBusy: Bool { isHandlerBusy || unreadCount ?? 0 > 0 }

    /// The program has exited. What comes after what is in the pipe now is from other programs.
    func programExited() {
        unreadCount = descriptor.map { Int(ok_unread_byte_count($0.number)) } ?? 0
    }

    /// Gives up a pipe that other programs hold open.
    func giveUp() {
        if descriptor.take() != nil { end({}) }
    }

    func handlerReturned() { isHandlerBusy = false }

    /// Releases the closure, when nothing comes any more. What it holds may block when it is freed.
    func releaseClosure() { destination = .discarded }

    /// Takes what has come, of which the first bytes are from the program itself. Returns false to stop reading.
    private func take(_ data: Data, ownCount: Int, _ taken: @escaping @Sendable () -> Void) -> Bool {
        if stream == 1 { lastBytes = (lastBytes + data).suffix(Self.tailLength + 1) }
        switch destination {
        case .captured(let maximum):
            let room = maximum - captured.count
            if ownCount > room { exceededLimit = maximum }
            guard exceededLimit == nil else { break }
            captured.append(data.prefix(room))
            return data.count <= room
        case .lines(let body):
            if delivery.isOver { break }
            isHandlerBusy = true
            queue.async { [splitter, delivery] in
                for line in splitter.append(data) {
                    if delivery.isOver { break }
                    body(line)
                }
                taken()
            }
        case .file, .inherited, .discarded: break
        }
        return true
    }

    private func end(_ taken: @escaping @Sendable () -> Void) {
        guard case .lines(let body) = destination else { return }
        isHandlerBusy = true
        queue.async { [splitter, delivery] in
            if let line = splitter.end(), !delivery.isOver { body(line) }
            taken()
        }
    }

    /// The end of what has come, as text without the last line break. It begins where a scalar does.
    var tail: String {
        var bytes = lastBytes.suffix(Self.tailLength)
        if bytes.count < lastBytes.count {
            // A scalar has three bytes after its first one at most.
            let cut = bytes.prefix(3).prefix { $0 & 0b1100_0000 == 0b1000_0000 }
            bytes = bytes.dropFirst(cut.count)
        }
        return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
#endif
