import OperationKitTestSupport

@testable import OperationKit

/// Which virtual thread goes on, at every place of a run, and what comes after that run.
struct Choices {
    enum Extent {
        /// Every order in which at most so many virtual threads lose the processor though they could go on. Most
        /// mistakes show with two.
        case preemptions(Int)
        /// So many runs with random choices, in which no more virtual threads than `preemptions` lose the processor
        /// though they could go on.
        case samples(Int, seed: UInt64, preemptions: Int = .max)

        /// Every order there is.
        static let everything = Extent.preemptions(.max)

        /// In the short extent of a test run, a sample of the orders instead of all of them.
        func bounded(seed: UInt64) -> Extent {
            let count = TestExtent.choose(6, long: .max)
            return switch self {
            case .preemptions(let most) where count < .max: .samples(count, seed: seed, preemptions: most)
            case .samples(let own, let seed, let most): .samples(min(own, count), seed: seed, preemptions: most)
            case .preemptions: self
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
        let taken: Int
        switch extent {
        case .preemptions(let most): taken = count == 1 || firstGoesOn && preemptions == most ? 0 : next(of: count)
        case .samples(_, _, let most):
            // Where preemptions are few, they are spread over the run.
            let isSpared = firstGoesOn && most < .max && (preemptions == most || random.next() % 12 != 0)
            taken = isSpared ? 0 : Int(random.next() % UInt64(count))
        }
        if firstGoesOn, taken > 0 { preemptions += 1 }
        return taken
    }

    /// The next choice on the path, which is the first one where no run has been.
    private mutating func next(of count: Int) -> Int {
        if position == path.count { path.append((0, count)) }
        if path[position].count != count { areContradictory = true }
        defer { position += 1 }
        return min(path[position].taken, count - 1)
    }

    /// Goes on to the next run, depth first.
    ///
    /// - Returns: Whether there is one.
    mutating func advance() -> Bool {
        (position, preemptions, samples) = (0, 0, samples + 1)
        if case .samples(let count, _, _) = extent { return samples < count }
        while let (taken, count) = path.popLast() {
            if taken + 1 == count { continue }
            path.append((taken + 1, count))
            return true
        }
        return false
    }
}
