package import Testing

/// Lets the suites that have it run one after the other, while all other suites go on.
///
/// Explorers and stress suites want a processor for themselves. Several of them would keep the tests waiting that only
/// wait for a gate. A suite that has this trait must not be inside another one that has it, too.
package struct TakesTurns: SuiteTrait, TestScoping {
    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        await Turns.shared.begin()
        do {
            try await function()
        } catch {
            await Turns.shared.end()
            throw error
        }
        await Turns.shared.end()
    }
}

extension Trait where Self == TakesTurns {
    /// The suite takes turns with all others that have this trait.
    package static var takesTurns: Self { TakesTurns() }
}

/// A place that one suite at a time has.
private actor Turns {
    static let shared = Turns()

    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func begin() async {
        if !isTaken {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Hands the place on to the suite that has waited longest.
    func end() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
