#if os(macOS) || os(Linux)
public import Foundation

/// What a program wrote, and how it ended.
public struct ProcessOutput: Sendable, Hashable {
    /// How the program ended.
    public let termination: ProcessTermination
    /// What the program wrote to its standard output, if that was captured.
    public let standardOutput: Data
    /// What the program wrote to its standard error, if that was captured.
    public let standardError: Data
    /// The time from the start of the program to its end.
    public let duration: Duration

    /// Creates an output, for tests of code that uses one.
    public init(
        termination: ProcessTermination = .exited(0), standardOutput: Data = Data(), standardError: Data = Data(),
        duration: Duration = .zero
    ) {
        self.termination = termination
        self.standardOutput = standardOutput
        self.standardError = standardError
        self.duration = duration
    }

    /// The standard output as text, without its last line break. What is no UTF-8 is replaced.
    public var text: String {
        let text = String(decoding: standardOutput, as: UTF8.self)
        return text.last == "\n" || text.last == "\r\n" ? String(text.dropLast()) : text
    }
}

/// How a program ended.
public enum ProcessTermination: Sendable, Hashable {
    /// It exited, with a status.
    case exited(Int32)
    /// A signal ended it.
    case signaled(Int32)

    var isSignal: Bool {
        if case .signaled = self { true } else { false }
    }

    func isAccepted(by statuses: Set<Int32>?) -> Bool {
        guard let statuses else { return true }
        if case .exited(let status) = self { return statuses.contains(status) }
        return false
    }
}

extension ProcessTermination: CustomStringConvertible {
    /// The status or the signal, in words.
    public var description: String {
        switch self {
        case .exited(-1): "ended, and its status is lost: SIGCHLD is ignored, or other code has waited for it"
        case .exited(let status): "exited with status \(status)"
        case .signaled(let signal): "was ended by signal \(signal)"
        }
    }
}

/// Where a program writes its standard output, or its standard error.
public struct ProcessOutputDestination: Sendable {
    enum Kind {
        case captured(maximumByteCount: Int)
        case lines(@Sendable (String) -> Void)
        case file(URL)
        case inherited
        case discarded
    }

    let kind: Kind

    /// The output of the operation, for at most 64 MiB of this stream. More ends the operation with
    /// ``ProcessError/outputTooLarge(command:maximumByteCount:)``.
    public static let captured = captured(maximumByteCount: 64 << 20)

    /// The output of the operation.
    ///
    /// - Parameter maximumByteCount: How much there may be; a negative number counts as 0. If the program writes more, it is ended, and the
    ///   operation ends with ``ProcessError/outputTooLarge(command:maximumByteCount:)``. What programs that it has left behind write
    ///   after its exit does not count, and is kept as long as there is room.
    /// - Returns: The destination.
    public static func captured(maximumByteCount: Int) -> ProcessOutputDestination {
        ProcessOutputDestination(kind: .captured(maximumByteCount: max(0, maximumByteCount)))
    }

    /// A closure that gets one line after the other.
    ///
    /// The lines come without their line breaks, in order and one at a time, on a dispatch queue of the operation, and all of them before the
    /// operation ends. A closure that takes long slows the program down, and no memory is used for what it has not taken. The last
    /// line counts if it has no line break, too. A line of more than a megabyte comes in parts, which end between two Unicode scalars.
    /// What is no UTF-8 is replaced. Lines of the two outputs of a program do not come in the order in which it has written them.
    ///
    /// After a cancellation, or a timeout, lines come for the ``ProcessOperation/terminationGracePeriod``, in which the program may say how
    /// it ends; none come once observers know of an end by other code. What is left then is dropped, even if the program exits with an
    /// accepted status. A call that is being made is not interrupted, and the operation ends after it.
    ///
    /// - Parameter body: The closure. It may block.
    /// - Returns: The destination.
    public static func lines(_ body: @escaping @Sendable (_ line: String) -> Void) -> ProcessOutputDestination {
        ProcessOutputDestination(kind: .lines(body))
    }

    /// A file, which the program itself writes. It is created if it is missing, and emptied right before the system is asked to start
    /// the program. A named pipe needs a reader beforehand.
    ///
    /// If standard output and standard error go to the same file, it has both in the order in which they were written.
    ///
    /// - Parameter url: The file.
    /// - Returns: The destination.
    public static func file(_ url: URL) -> ProcessOutputDestination {
        ProcessOutputDestination(kind: .file(url))
    }

    /// The same as that of this process; nowhere, if that is closed or closes on exec.
    public static let inherited = ProcessOutputDestination(kind: .inherited)

    /// Nowhere.
    public static let discarded = ProcessOutputDestination(kind: .discarded)
}
#endif
