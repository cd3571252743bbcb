import Dispatch
import Foundation

/// An operation that was released while it was executing, so that it never finished.
public struct UnfinishedOperation: Sendable, CustomStringConvertible {
    /// The name that it had when it started, or else its type.
    public let name: String
    /// Its type.
    public let type: AsyncOperation.Type
    /// How long it had been executing when it was released.
    public let age: Duration
    /// Where it was started: the name of the operation queue, or of the thread.
    public let origin: String
    /// The call stack of its start, if ``OperationDiagnostics/level-swift.type.property`` is
    /// ``OperationDiagnostics/Level/all``. Otherwise it is empty.
    public let callStack: [String]

    /// A sentence with all of this.
    public var description: String {
        let lines = [
            "OperationKit: “\(name)” (\(type)) was released while executing, after \(ageText(age)), without having finished. "
                + "It was started on \(origin)."
        ]
        return (lines + callStack.map { "    \($0)" }).joined(separator: "\n")
    }
}

/// Hands reports to the handler, one after the other.
final class UnfinishedReporter: Sendable {
    static let shared = UnfinishedReporter()

    typealias Handler = @Sendable (UnfinishedOperation) -> Void

    private let queue = DispatchQueue(label: "UnfinishedOperation")
    private let current = Locked<Handler?>(UnfinishedReporter.print)

    var handler: Handler? {
        get { current.withLock { $0 } }
        set {
            // Release the old handler after unlocking; its deinitializers may run arbitrary code.
            let previous = current.withLock { exchange(&$0, with: newValue) }
            withExtendedLifetime(previous) {}
        }
    }

    /// Reports asynchronously: the releasing thread may hold arbitrary locks.
    func report(_ operation: UnfinishedOperation) {
        queue.async { self.handler?(operation) }
    }

    /// Waits until the reports up to now have been handed over.
    func waitForReports() {
        queue.sync {}
    }

    private static func print(_ operation: UnfinishedOperation) {
        FileHandle.standardError.write(Data("\(operation)\n".utf8))
    }
}

/// A time as people say it, about as exact as they want to know.
func ageText(_ age: Duration) -> String {
    let (seconds, attoseconds) = age.components
    if seconds < 1 { return "\(attoseconds / 1_000_000_000_000_000) ms" }
    if seconds < 10 { return "\(seconds).\(attoseconds / 100_000_000_000_000_000) s" }
    if seconds < 120 { return "\(seconds) s" }
    if seconds < 7_200 { return "\(seconds / 60) min \(seconds % 60) s" }
    return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
}
