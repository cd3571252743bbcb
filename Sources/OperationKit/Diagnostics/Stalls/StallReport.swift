import Foundation

/// An operation that has executed for longer than ``OperationDiagnostics/reportStalls(longerThan:clock:handler:)`` allows.
///
/// It holds texts, not the operation: keeping a report keeps nothing alive.
public struct StallReport: Sendable, CustomStringConvertible {
    /// Identifies the operation, as in its events.
    public let operation: OperationID
    /// The name of the operation, or what errors call it: its type, in most cases.
    public let name: String
    /// Its type.
    public let type: AsyncOperation.Type
    /// The time that has passed since it started, measured with the clock of the reports.
    public let age: Duration
    /// What it does, as in its `debugDescription`, without times: “executing”, “waiting for exclusive access to
    /// “database”, held by “import””, “told to end, waiting for its children”, “delivering its outcome”.
    public let state: String
    /// Whether it was cancelled, which its work ignores, or takes long to do.
    public let isCancelled: Bool
    /// The timeout because of which it was cancelled: its own, or that of a composite around it. `nil` if there was none.
    public let exceededTimeout: Duration?
    /// Where it was started: the name of the operation queue, or of the thread. `nil` if the
    /// ``OperationDiagnostics/level-swift.type.property`` is ``OperationDiagnostics/Level/off``.
    public let origin: String?
    /// The call stack of its start, if the ``OperationDiagnostics/level-swift.type.property`` is
    /// ``OperationDiagnostics/Level/all``. Otherwise it is empty.
    public let callStack: [String]
    /// The `debugDescription` of the outermost composite around the operation, or of the operation itself if there is none.
    /// It says what the others in there wait for.
    public let tree: String

    /// A sentence about the operation, and below it the tree, unless that would be one line. The last is the call stack.
    public var description: String {
        let words =
            (isCancelled ? ["cancelled"] : []) + [state]
            + (exceededTimeout.map { ["longer than its timeout of \($0)"] } ?? [])
        let sentence =
            "OperationKit: “\(name)” (\(type.typeTitle)) has not finished \(ageText(age)) after its start: "
            + words.joined(separator: ", ") + "." + (origin.map { " It was started on \($0)." } ?? "")
        let lines = tree.split(separator: "\n").map { "  \($0)" }
        return ([sentence] + (lines.count > 1 ? lines : []) + indented(callStack)).joined(separator: "\n")
    }
}

extension StallReport {
    /// Asks the operation and those around it, so nothing may be locked. `nil` if it has finished.
    ///
    /// Complexity: that of `debugDescription` of the outermost composite.
    init?(_ operation: AsyncOperation, _ id: OperationID, age: Duration) {
        let now = ContinuousClock.now
        let status = operation.status(at: now)
        if status == .finished { return nil }
        let (execution, reason) = operation.withState { ($0.execution, $0.lifecycle.cancellationReason) }
        let outermost = operation.enclosingOperations.reduce(operation) { $1 }
        self.operation = id
        name = operation.displayName
        type = operation.derivedFrom
        self.age = age
        state = status.withoutAge.text
        isCancelled = operation.isCancelled
        exceededTimeout = isCancelled ? (reason as? OperationTimeoutError)?.timeout : nil
        origin = execution?.origin
        callStack = execution?.callStack ?? []
        tree = OperationTree(outermost, at: now).text
    }
}

extension OperationStatus {
    /// The same without the elapsed time.
    fileprivate var withoutAge: Self {
        switch self {
        case .preparing(let description, _): .preparing(description, nil)
        case .executing: .executing(nil)
        case .draining: .draining(nil)
        case .notStarted, .starting, .finishing, .finished: self
        }
    }
}
