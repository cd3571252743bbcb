import Foundation
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A terminal without a screen: what is typed into it and what is written to it are in the hands of the test.
final class PseudoTerminal: @unchecked Sendable {
    /// The side of the program: its standard input and output.
    let device: FileHandle
    private let controller: FileHandle
    private let lock = NSLock()
    private var written = ""
    private var isClosed = false
    private var waiters: [(text: String, answer: @Sendable (_ isWritten: Bool) -> Void)] = []

    init(columns: UInt16 = 100) throws {
        var controller: Int32 = -1
        var device: Int32 = -1
        var size = winsize(ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        try #require(unsafe openpty(&controller, &device, nil, nil, &size) == 0)
        for descriptor in [controller, device] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        self.controller = FileHandle(fileDescriptor: controller, closeOnDealloc: true)
        self.device = FileHandle(fileDescriptor: device, closeOnDealloc: true)
    }

    /// To be called when the program has its side: the terminal is closed when the program ends, and reading begins.
    func hasProgram() throws {
        try device.close()
        Thread { [self] in PseudoTerminal.collect(from: controller.fileDescriptor) { came($0) } }.start()
    }

    /// The settings that a program may change, and has to restore.
    var settings: [UInt64] {
        var settings = termios()
        guard unsafe tcgetattr(controller.fileDescriptor, &settings) == 0 else { return [] }
        return [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag].map { UInt64($0) }
    }

    /// Suspends until the program has closed its side, and returns all that was written.
    func output() async -> String {
        _ = await hasWritten("\u{0}, which is never written")
        return lock.withLock { written }
    }

    func type(_ keys: String) throws {
        try controller.write(contentsOf: Data(keys.utf8))
    }

    /// Suspends until the text has been written. Returns false if the terminal is closed before.
    func hasWritten(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            when(text) { continuation.resume(returning: $0) }
        }
    }

    /// Calls `answer` as soon as the text has been written, or the terminal closed. However busy the machine is with
    /// other tests, no task has to get its turn first.
    func when(_ text: String, _ answer: @escaping @Sendable (_ isWritten: Bool) -> Void) {
        let isWritten: Bool? = lock.withLock {
            if written.contains(text) { return true }
            if isClosed { return false }
            waiters.append((text, answer))
            return nil
        }
        isWritten.map(answer)
    }

    private func came(_ text: String?) {
        let woken = lock.withLock {
            written += text ?? ""
            isClosed = text == nil
            let woken = waiters.filter { isClosed || written.contains($0.text) }
            waiters.removeAll { isClosed || written.contains($0.text) }
            return woken.map { ($0.answer, written.contains($0.text)) }
        }
        for (answer, isWritten) in woken { answer(isWritten) }
    }

    /// Reads until the last program has closed its side, which Linux calls an error.
    private static func collect(from descriptor: Int32, _ handler: (String?) -> Void) {
        // A character may be cut by the end of a read.
        var pending: [UInt8] = []
        while true {
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                count = unsafe max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            if bytes.isEmpty { return handler(nil) }
            pending += bytes
            guard let text = String(validating: pending, as: UTF8.self) else { continue }
            pending = []
            handler(text)
        }
    }
}
