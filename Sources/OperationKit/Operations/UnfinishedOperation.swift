/// An operation that had not finished when something went wrong with it.
public struct UnfinishedOperation: Sendable, CustomStringConvertible {
    /// The name that it had when it started, or else what errors call it: its type, in most cases.
    public let name: String
    /// Its type.
    public let type: AsyncOperation.Type
    /// How long it had been executing then.
    public let age: Duration
    /// Where it was started: the name of the operation queue, or of the thread.
    public let origin: String
    /// The call stack of its start, if ``OperationDiagnostics/level-swift.type.property`` is
    /// ``OperationDiagnostics/Level/all``. Otherwise it is empty.
    public let callStack: [String]

    /// A sentence with all of this, for an operation that was released.
    public var description: String {
        let lines = [
            "OperationKit: “\(name)” (\(type.typeTitle)) was released while executing, after \(ageText(age)), without having finished. "
                + "It was started on \(origin). "
                + "Keep it alive until it finishes: let its work hold it, or keep a reference to it."
        ]
        return (lines + indented(callStack)).joined(separator: "\n")
    }
}

/// The lines of a call stack, below a sentence.
func indented(_ lines: [String]) -> [String] {
    lines.map { "    \($0)" }
}

/// A duration for people to read, with two or three digits.
func ageText(_ age: Duration) -> String {
    let (seconds, attoseconds) = age.clamped.components
    if seconds < 1 { return "\(attoseconds / 1_000_000_000_000_000) ms" }
    if seconds < 10 { return "\(seconds).\(attoseconds / 100_000_000_000_000_000) s" }
    if seconds < 120 { return "\(seconds) s" }
    if seconds < 7_200 { return "\(seconds / 60) min \(seconds % 60) s" }
    return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
}
