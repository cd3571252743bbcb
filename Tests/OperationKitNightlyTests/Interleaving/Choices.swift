import OperationKitTestSupport

@testable import OperationKit

/// Which virtual thread goes on, at every place of a run, and what comes after that run.
struct Choices {
    enum Extent {
        /// Every order there is.
        case everything
        /// Every order in which at most so many virtual threads lose the processor though they could go on. Most
        /// mistakes show with two.
        case preemptions(Int)
        /// So many runs with random choices, in which no more virtual threads than `preemptions` lose the processor
        /// though they could go on.
        case samples(Int, seed: UInt64, preemptions: Int = .max)

        /// In the short extent of a test run, a sample of the orders instead of all of them.
        func bounded(seed: UInt64) -> Extent {
            let count = TestExtent.choose(6, long: .max)
            return switch self {
            case .everything where count < .max: .samples(count, seed: seed)
            case .preemptions(let most) where count < .max: .samples(count, seed: seed, preemptions: most)
            case .samples(let own, let seed, let most): .samples(min(own, count), seed: seed, preemptions: most)
            case .everything, .preemptions: self
            }
        }
    }

    /// A seed for random choices: another one in each run, or what `INTERLEAVING_SEED` says.
    static func seed() -> UInt64 {
        ProcessInfo.processInfo.environment["INTERLEAVING_SEED"].flatMap { UInt64($0) } ?? SplitMix64.freshSeed()
    }

    private let extent: Extent
    /// The choices of the last run, where there was more than one: which was taken, of how many.
    private var path: [(taken: Int, count: Int)] = []
    private var position = 0
    private var preemptions = 0
    private var samples = 0
    private var random = SplitMix64(seed: 0)
    /// Whether the same choices led to a different run: then the virtual threads are moved by something else, too.
    private(set) var areContradictory = false

    init(_ extent: Extent) {
        self.extent = extent
        if case .samples(_, let seed, _) = extent { random = SplitMix64(seed: seed) }
    }

    /// Chooses one of several.
    ///
    /// - Parameters:
    ///   - count: How many there are to choose from.
    ///   - firstGoesOn: Whether the first one is the virtual thread that is at work, so that any other is a preemption.
    /// - Returns: The index of the chosen one.
    mutating func choose(of count: Int, firstGoesOn: Bool) -> Int {
        if case .samples(_, _, let most) = extent { return sample(of: count, firstGoesOn: firstGoesOn, most) }
        if case .preemptions(let most) = extent, firstGoesOn, preemptions == most { return 0 }
        if count == 1 { return 0 }
        if position == path.count { path.append((0, count)) }
        if path[position].count != count { areContradictory = true }
        let taken = min(path[position].taken, count - 1)
        position += 1
        if firstGoesOn, taken > 0 { preemptions += 1 }
        return taken
    }

    /// Chooses one of several at random. Where preemptions are few, they are spread over the run.
    private mutating func sample(of count: Int, firstGoesOn: Bool, _ most: Int) -> Int {
        if firstGoesOn, most < .max, preemptions == most || random.next() % 12 != 0 { return 0 }
        let taken = Int(random.next() % UInt64(count))
        if firstGoesOn, taken > 0 { preemptions += 1 }
        return taken
    }

    /// Goes on to the next run, depth first.
    ///
    /// - Returns: Whether there is one.
    mutating func advance() -> Bool {
        if case .samples(let count, _, _) = extent {
            samples += 1
            preemptions = 0
            return samples < count
        }
        position = 0
        preemptions = 0
        while let (taken, count) = path.popLast() {
            if taken + 1 == count { continue }
            path.append((taken + 1, count))
            return true
        }
        return false
    }
}
