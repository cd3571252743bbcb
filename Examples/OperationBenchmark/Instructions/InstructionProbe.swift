import Foundation

/// Does what a case is about in a process of its own, whose instructions another program counts.
///
/// The process is the benchmark itself, with an argument that no one else gives it. It prints nothing.
struct InstructionProbe: Equatable, Sendable {
    static let argument = "--instruction-probe"

    /// The name of the case.
    let id: String
    let count: Int

    /// The arguments of the process.
    var arguments: [String] { [Self.argument, id, "--count", String(count)] }

    /// What that process does.
    func run() {
        InstructionCase.named(id)?.body(count)
    }
}
