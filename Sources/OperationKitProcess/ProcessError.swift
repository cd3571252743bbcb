#if os(macOS) || os(Linux)
public import Foundation
public import OperationKit

/// What went wrong with a program.
public enum ProcessError: Sendable, Hashable, LocalizedError, CustomNSError, ReportedError {
    /// There is no such program: in `PATH`, or at the path. Code 1.
    case notFound(command: String)
    /// The file is a directory, or may not be executed. Code 2.
    case notExecutable(command: String, path: String)
    /// The directory in which the program was to run does not exist, or is none. Code 3.
    case invalidDirectory(command: String, directory: String)
    /// An argument or the name of the program contains a NUL character, which ends a string for the system. It is shortened and
    /// escaped here. Code 4.
    case invalidArgument(command: String, argument: String)
    /// The file for the output could not be opened. `code` is an error number of the system. Code 5.
    case invalidOutput(command: String, path: String, code: Int32)
    /// The system did not start the program, for example because its arguments are too long. `code` is an error number of the
    /// system. Code 6.
    case launchFailed(command: String, code: Int32)
    /// The program exited with a status that is not accepted, or was ended by a signal. `standardError` is the end of what it wrote
    /// there, if that came through a pipe; in messages, what may do something to a terminal is escaped. Code 7.
    case failed(command: String, termination: ProcessTermination, standardError: String)
    /// The program wrote more than may be captured, and was ended. Code 8.
    case outputTooLarge(command: String, maximumByteCount: Int)
    /// The name of an environment variable is empty or contains “=”, or it or the value contains a NUL character. Code 9.
    case invalidVariable(command: String, name: String)
    /// The program exited with an accepted status, but got only a part of its input: the system refused the rest. `code` is an error
    /// number of the system. Code 10.
    case inputFailed(command: String, code: Int32)

    /// The command, with its arguments, shortened.
    public var command: String {
        switch self {
        case .notFound(let command), .notExecutable(let command, _), .invalidDirectory(let command, _),
            .invalidArgument(let command, _), .invalidOutput(let command, _, _), .launchFailed(let command, _),
            .failed(let command, _, _), .outputTooLarge(let command, _), .invalidVariable(let command, _),
            .inputFailed(let command, _):
            command
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .notFound(let command):
            "The command “\(command)” was not started, because there is no such program. Check its name, and PATH."
        case .notExecutable(let command, let path):
            "The command “\(command)” was not started, because “\(path)” is no program that may be executed."
        case .invalidDirectory(let command, let directory):
            "The command “\(command)” was not started, because there is no directory “\(directory)”."
        case .invalidArgument(let command, let argument):
            "The command “\(command)” was not started, because “\(argument)” contains a NUL character."
        case .invalidOutput(let command, let path, let code):
            "The command “\(command)” was not started, because “\(path)” could not be opened: \(message(code))."
        case .launchFailed(let command, let code):
            "The command “\(command)” was not started: \(message(code))."
                // The file itself has been found.
                + (code == ENOENT ? " The program in its first line, or its loader, may be missing." : "")
        case .failed(let command, let termination, let standardError):
            standardError.isEmpty
                ? "The command “\(command)” \(termination)."
                : "The command “\(command)” \(termination): \(CommandLine.printable(standardError))"
        case .outputTooLarge(let command, let maximum):
            "The command “\(command)” was ended, because it wrote more than "
                + (maximum == 1 ? "1 byte" : "\(maximum) bytes") + ". Use lines or a file."
        case .invalidVariable(let command, let name):
            "The command “\(command)” was not started, because the environment variable “\(name)” can't be set: "
                + "names are not empty and have no “=”, and nothing contains a NUL character."
        case .inputFailed(let command, let code):
            "The command “\(command)” got only a part of its input: \(message(code))."
        }
    }

    private func message(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    package var numericCode: Int {
        switch self {
        case .notFound: 1
        case .notExecutable: 2
        case .invalidDirectory: 3
        case .invalidArgument: 4
        case .invalidOutput: 5
        case .launchFailed: 6
        case .failed: 7
        case .outputTooLarge: 8
        case .invalidVariable: 9
        case .inputFailed: 10
        }
    }

    package var underlyingError: (any Error)? {
        switch self {
        case .launchFailed(_, let code), .invalidOutput(_, _, let code), .inputFailed(_, let code):
            NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        default: nil
        }
    }
}
#endif
