import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The terminal on standard input, with keys read one by one and not shown.
///
/// It is restored by `restore()`, and at the latest when the process exits. Control-C and Control-Z stay signals.
final class RawTerminal: @unchecked Sendable {
    static let shared = RawTerminal()

    private let lock = NSLock()
    private var original: termios?
    private var isRegistered = false

    private init() {}

    /// Whether there is a terminal to read keys from, and one to draw on.
    static var isAvailable: Bool {
        let isDumb = ProcessInfo.processInfo.environment["TERM"] == "dumb"
        return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !isDumb
    }

    func enter() {
        lock.withLock {
            var settings = termios()
            guard original == nil, unsafe tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
            original = settings
            if !isRegistered {
                isRegistered = true
                atexit { RawTerminal.shared.restore() }
            }
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
            _ = unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        }
    }

    /// Leaves the terminal as it was found. Keys that were not read are discarded: the shell should not get them.
    func restore() {
        lock.withLock {
            guard var settings = original else { return }
            original = nil
            _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
        }
    }

    /// The bytes that were typed; nil when the terminal is gone.
    func read() -> [UInt8]? {
        let capacity = 256
        return unsafe [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            #if canImport(Darwin)
            count = unsafe max(0, Darwin.read(STDIN_FILENO, buffer.baseAddress, capacity))
            #elseif canImport(Glibc)
            count = unsafe max(0, Glibc.read(STDIN_FILENO, buffer.baseAddress, capacity))
            #elseif canImport(Musl)
            count = unsafe max(0, Musl.read(STDIN_FILENO, buffer.baseAddress, capacity))
            #endif
        }.nilIfEmpty
    }
}

extension Array {
    fileprivate var nilIfEmpty: Self? {
        isEmpty ? nil : self
    }
}
