import Foundation

/// How much this process records of the operations that execute: what the environment variable
/// `OPERATIONKIT_DIAGNOSTICS` says.
enum ExecutionRecording: Sendable {
    case off
    /// When and where they started.
    case starts
    /// The call stacks of their starts, too.
    case all(ExecutionRegistry)

    static let current = Self(environment: ProcessInfo.processInfo.environment)

    init(environment: [String: String]) {
        switch environment["OPERATIONKIT_DIAGNOSTICS"] {
        case "off": self = .off
        case "starts": self = .starts
        case "all": self = .all(ExecutionRegistry())
        default:
            #if DEBUG
            self = .starts
            #else
            self = .off
            #endif
        }
    }

    /// All operations that are executing, if they are recorded.
    var registry: ExecutionRegistry? {
        if case .all(let registry) = self { registry } else { nil }
    }

    /// Reports a mistake, unless nothing is recorded.
    func report(_ report: MisuseReport) {
        if case .off = self { return }
        MisuseReporter.shared.report(report)
    }

    /// What is recorded of an operation that is about to execute. To be called on the thread that starts it.
    func record(of operation: AsyncOperation) -> ExecutionRecord? {
        if case .off = self { return nil }
        return ExecutionRecord(operation, registry, .shared, at: .now)
    }
}
