import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Standard output and standard error, and what is known of them.
struct Console: Sendable {
    let isTerminal: Bool
    let style: Style

    init(allowsColor: Bool) {
        let environment = ProcessInfo.processInfo.environment
        isTerminal = isatty(STDOUT_FILENO) == 1
        let isWanted = allowsColor && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        style = Style(isColored: isTerminal && isWanted)
    }

    /// Whether what is written can be written over.
    var isAnimated: Bool {
        isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// The width of the terminal as it is now; 80 where there is none.
    var columns: Int { size.columns }

    /// The size of the terminal as it is now; 80 by 24 where there is none.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard isTerminal, unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    func print(_ line: String) {
        write(line + "\n")
    }

    func print(_ lines: [String]) {
        write(lines.map { $0 + "\n" }.joined())
    }

    /// Writes text as it is, immediately.
    ///
    /// When that fails, the process ends: nothing it does can be seen any more. If it is because the reader has gone away, as
    /// in `| head`, it ends without a word.
    func write(_ text: String) {
        do {
            try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
        } catch {
            let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            let reason = FileError(code: Int32(underlying?.code ?? 0))
            if reason.code == EPIPE { ExitStatus.brokenPipe.exit() }
            Console.complain("OperationDemo: cannot write the output: \(reason.localizedDescription)")
            ExitStatus.outputFailed.exit()
        }
    }

    /// Writes a line to standard error. If that is gone too, the line is lost.
    static func complain(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }
}

extension ExitStatus {
    func exit() -> Never {
        Foundation.exit(rawValue)
    }
}
