import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// Which strand goes on, at every place of a run, and what comes after that run.
struct Choices {
    enum Extent {
        /// Every order there is.
        case everything
        /// Every order in which at most so many strands lose the processor though they could go on. Most mistakes show
        /// with two.
        case preemptions(Int)
        /// So many runs with random choices.
        case samples(Int, seed: UInt64)
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
    /// Whether the same choices led to a different run: then the strands are moved by something else, too.
    private(set) var areContradictory = false

    init(_ extent: Extent) {
        self.extent = extent
        if case .samples(_, let seed) = extent { random = SplitMix64(seed: seed) }
    }

    /// Chooses one of several.
    ///
    /// - Parameter firstGoesOn: Whether the first one is the strand that is at work, so that any other is a preemption.
    mutating func choose(of count: Int, firstGoesOn: Bool) -> Int {
        if case .samples = extent { return Int(random.next() % UInt64(count)) }
        if case .preemptions(let most) = extent, firstGoesOn, preemptions == most { return 0 }
        if count == 1 { return 0 }
        if position == path.count { path.append((0, count)) }
        if path[position].count != count { areContradictory = true }
        let taken = min(path[position].taken, count - 1)
        position += 1
        if firstGoesOn, taken > 0 { preemptions += 1 }
        return taken
    }

    /// Goes on to the next run, depth first.
    ///
    /// - Returns: Whether there is one.
    mutating func advance() -> Bool {
        if case .samples(let count, _) = extent {
            samples += 1
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
