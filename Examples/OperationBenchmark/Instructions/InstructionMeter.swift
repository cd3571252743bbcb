/// Finds out what cases cost, by the instructions of processes that do little and much of the same.
struct InstructionMeter {
    /// How often a repeated case is counted.
    let rounds: Int
    /// Returns the instructions of a process.
    let count: (InstructionProbe) throws -> Int

    /// Counts a case.
    ///
    /// What a process does once, such as its start, is the same for few and for many, and does not count. Where threads
    /// meet, what they do while they wait for each other comes on top, so the least of all rounds is taken.
    ///
    /// - Parameters:
    ///   - item: The case.
    ///   - willCount: Called before each process, with a text that says which.
    /// - Returns: The instructions of each operation, rounded.
    /// - Throws: The error of the first process that cannot be counted.
    func cost(of item: InstructionCase, willCount: (String) -> Void = { _ in }) throws -> Int {
        let (few, many) = (item.counts.few, item.counts.many)
        var least: [Int: Int] = [:]
        for round in 0..<(item.isRepeated ? rounds : 1) {
            for size in [few, many] {
                willCount((item.isRepeated ? "round \(round + 1) of \(rounds): " : "") + grouped(size))
                let instructions = try count(InstructionProbe(id: item.id, count: size))
                least[size] = min(instructions, least[size] ?? .max)
            }
        }
        return Int((Double((least[many] ?? 0) - (least[few] ?? 0)) / Double(many - few)).rounded())
    }

    /// Counts cases, and those that they are compared with, each of them once.
    ///
    /// - Parameters:
    ///   - cases: The cases.
    ///   - willCount: Called before each process, with a text that says which.
    /// - Returns: What was found for each of the cases, in their order.
    /// - Throws: The error of the first process that cannot be counted.
    func results(
        of cases: [InstructionCase], willCount: (String) -> Void = { _ in }
    ) throws -> [InstructionReport.Result] {
        var costs: [String: Int] = [:]
        func cost(of item: InstructionCase) throws -> Int {
            if let cost = costs[item.id] { return cost }
            let cost = try self.cost(of: item) { willCount("\(item.id)  \($0)") }
            costs[item.id] = cost
            return cost
        }
        return try cases.map { item in
            InstructionReport.Result(
                id: item.id, summary: item.summary, cost: try cost(of: item),
                baseline: try item.baseline.flatMap(InstructionCase.named).map { baseline in
                    InstructionReport.Baseline(id: baseline.id, cost: try cost(of: baseline))
                })
        }
    }
}
