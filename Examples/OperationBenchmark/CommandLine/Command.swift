/// What the arguments ask for.
enum Command: Equatable, Sendable {
    case help
    case list
    case run(Options)
    /// In a process that another one has started, to measure memory.
    case probe(MemoryProbe)
    case instructions(InstructionOptions)
    /// In a process that another one has started, to count its instructions.
    case instructionProbe(InstructionProbe)
}

/// What can be set for a run.
struct Options: Equatable, Sendable {
    /// Fewer than five rounds have no median to rely on.
    static let roundCounts = 5...1000

    /// The cases by name; all if there is none.
    var only: [String] = []
    var count = 100_000
    var rounds = 5
    /// Where the report goes, too.
    var json: String?
    /// The report of an earlier run that this one is compared with.
    var compared: String?
    var isMarkdown = false
    var isCheck = false

    /// The cases that are asked for, in their own order.
    var cases: [Case] {
        only.isEmpty ? Case.all : Case.all.filter { only.contains($0.id) }
    }
}

/// What can be set where instructions are counted.
struct InstructionOptions: Equatable, Sendable {
    static let argument = "--instructions"

    /// The cases by name; all if there is none.
    var only: [String] = []
    /// How often a case is counted in which threads meet.
    var rounds = Options().rounds
    var isMarkdown = false

    /// The cases that are asked for, in their own order.
    var cases: [InstructionCase] {
        only.isEmpty ? InstructionCase.all : InstructionCase.all.filter { only.contains($0.id) }
    }
}

/// What the process ends with.
enum ExitStatus: Int32, Sendable {
    case success = 0
    case goalMissed = 1
    /// The arguments are wrong, or the file that they name cannot be written.
    case usage = 2
    /// The measurement itself went wrong, or what it found could not be shown.
    case failed = 3
}
