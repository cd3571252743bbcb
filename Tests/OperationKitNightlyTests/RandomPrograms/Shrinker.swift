import OperationKitTestSupport

/// Makes a program that fails smaller, as long as it still fails: first by removing nodes and actions, many at the same time and
/// then fewer (delta debugging), then by simplifying what is left.
struct Shrinker {
    /// Whether a program fails. Where a race decides, it has to be run often enough.
    let fails: (StressProgram) -> Bool
    /// How many programs to try at most.
    var budget = 2_000

    /// - Returns: A program that fails, and none of whose simplifications does, unless the budget was used up.
    mutating func shrink(_ program: StressProgram) -> StressProgram {
        var smallest = program
        while budget > 0 {
            let before = smallest
            smallest = removingParts(of: smallest)
            smallest = simplifying(smallest)
            if smallest == before { break }
        }
        return smallest
    }

    /// Whether the candidate is another program, and fails.
    private mutating func isBetter(_ candidate: StressProgram, than program: StressProgram) -> Bool {
        guard candidate != program, budget > 0 else { return false }
        budget -= 1
        return fails(candidate)
    }

    private enum Part { case node(Int), action(Int) }

    private mutating func removingParts(of program: StressProgram) -> StressProgram {
        var smallest = program
        var size = max(1, parts(of: smallest).count / 2)
        while true {
            var start = 0
            while start < parts(of: smallest).count {
                let chosen = parts(of: smallest)[start...].prefix(size)
                var nodes: Set<Int> = []
                var actions: Set<Int> = []
                for part in chosen {
                    switch part {
                    case .node(let id): nodes.insert(id)
                    case .action(let index): actions.insert(index)
                    }
                }
                let candidate = smallest.removing(nodes: nodes, actions: actions)
                if isBetter(candidate, than: smallest) { smallest = candidate } else { start += size }
            }
            if size == 1 { return smallest }
            size = max(1, size / 2)
        }
    }

    /// Actions first: most of them have nothing to do with a failure, and without them more nodes can go.
    private func parts(of program: StressProgram) -> [Part] {
        program.actions.indices.map(Part.action)
            + program.nodes.filter { $0.id != program.root.id }.map { .node($0.id) }
    }

    private mutating func simplifying(_ program: StressProgram) -> StressProgram {
        var smallest = program
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for candidate in smallest.simplifications where isBetter(candidate, than: smallest) {
                smallest = candidate
                isSmaller = true
                break
            }
        }
        return smallest
    }
}
