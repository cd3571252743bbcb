/// A small generator with a seed, for tests that can be repeated.
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Spends a random short time, so that two threads meet at ever different places.
    @inline(never)
    package mutating func spinRandomly(upTo turns: UInt64 = 300) {
        for _ in 0..<(next() % turns) { _ = next() }
    }

    /// A seed that differs from run to run. Print it when a test fails.
    package static func freshSeed() -> UInt64 {
        UInt64.random(in: 0...UInt64(UInt32.max))
    }
}
