/// A question, and the experiments that answer it.
struct Case: Sendable {
    /// Its name for `--only` and in reports.
    let id: String
    /// What is measured.
    let summary: String
    /// What it is measured against.
    let baseline: String
    /// What lies between the start of the clock and its end, on both sides.
    let timed: String
    /// The experiments for a number of children.
    let experiments: @Sendable (_ scale: Scale) -> [Experiment]

    static let all: [Case] = [
        .queue, .flat, .chain, .layers, .closures, .work, .smallCompounds, .smallMacros, .singleChild, .memory, .items,
        .sequence, .otherThread, .tasks, .macro, .timeouts, .observers, .exclusion, .blocks, .blockChain,
    ]
}

/// How much of everything there is, by the number of children in an ordinary trial.
struct Scale: Sendable {
    static let counts = 1...1_000_000

    let count: Int

    /// Ten times the count: a million, unless another count was asked for.
    var many: Int { count * 10 }

    /// The sizes by which growth is shown.
    var sizes: [Int] {
        [count / 100, count / 10, count, many].reduce(into: []) { sizes, size in
            if size > sizes.last ?? 0 { sizes.append(size) }
        }
    }

    /// The size that the largest one is compared with. What happens below it is the price of the beginning, not growth.
    var flatFrom: Int { max(sizes[0], count / 10) }

    /// The length of a chain on a stock queue, which is quadratic there.
    var stockChain: Int { max(1, count / 25) }

    /// The length of a macro.
    var steps: Int { min(1000, count) }
}

/// “100,000”.
func grouped(_ number: Int) -> String {
    var digits = String(number)
    var end = digits.endIndex
    while digits.distance(from: digits.startIndex, to: end) > 3 {
        end = digits.index(end, offsetBy: -3)
        digits.insert(",", at: end)
    }
    return digits
}
