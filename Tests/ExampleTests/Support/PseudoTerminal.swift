import OperationKitTestSupport

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A terminal without a screen: what is typed into it and what is written to it are in the hands of the test.
final class PseudoTerminal: Sendable {
    /// The side of the program: its standard input and output.
    let device: FileHandle
    private let controller: FileHandle
    private let written = Shared((bytes: Data(), isClosed: false))

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
        Thread { [written, controller] in
            // Until the last program has closed its side, which Linux calls an error.
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = unsafe read(controller.fileDescriptor, &buffer, buffer.count)
                if count <= 0 { break }
                written.change { $0.bytes += buffer[..<count] }
            }
            written.change { $0.isClosed = true }
        }.start()
    }

    /// The settings that a program may change, and has to restore.
    var settings: [UInt64] {
        var settings = termios()
        guard unsafe tcgetattr(controller.fileDescriptor, &settings) == 0 else { return [] }
        return [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag].map { UInt64($0) }
    }

    /// Suspends until the program has closed its side, and returns all that was written.
    func output() async -> String {
        await eventually("the terminal is open") { written.value.isClosed }
        return String(decoding: written.value.bytes, as: UTF8.self)
    }

    func type(_ keys: String) throws { try controller.write(contentsOf: Data(keys.utf8)) }

    /// Suspends until the text has been written. Returns false if the terminal is closed before.
    func hasWritten(_ text: String) async -> Bool {
        let isThere = { @Sendable [written] in written.value.bytes.range(of: Data(text.utf8)) != nil }
        await eventually("“\(text)” is not written") { isThere() || written.value.isClosed }
        return isThere()
    }
}
