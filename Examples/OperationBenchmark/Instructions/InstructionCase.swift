/// Something that is done many times, and whose instructions are counted.
struct InstructionCase: Sendable {
    /// Its name for `--only` and in tables.
    let id: String
    /// What is counted, for each operation.
    let summary: String
    /// The name of the case that it is compared with.
    var baseline: String?
    var counts = Counts.ordinary
    /// Whether threads meet each time, so that the count differs from run to run.
    var isRepeated = false
    /// Does it as often as asked for, and returns when all of it has ended.
    let body: @Sendable (_ count: Int) -> Void

    /// How often it is done in the two processes that are compared.
    struct Counts: Equatable, Sendable {
        static let ordinary = Counts(few: 2_000, many: 12_000)
        /// For composites, which cost many times what an operation costs.
        static let composites = Counts(few: 500, many: 2_500)

        let few: Int
        let many: Int
    }

    static let all: [InstructionCase] = [
        .plain, .creation, .plainAlone, .lockedAlone, .creationAlone, .life, .observed, .global, .timeout, .queueBlock,
        .queue, .compound, .dependencies, .chain, .blocks, .blockChain, .queueOtherThread, .otherThread,
        .smallCompound, .inTurn, .singleChild, .singleBlock, .smallMacro, .macro, .group, .value, .item, .sequence,
    ]

    static func named(_ id: String) -> InstructionCase? {
        all.first { $0.id == id }
    }
}
