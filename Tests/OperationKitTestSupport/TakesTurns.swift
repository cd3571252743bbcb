package import Testing

/// Lets two of the suites that have it run at a time, while all other suites go on.
///
/// Explorers and stress suites want a processor for themselves. All of them together would keep the tests waiting that only
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

/// Places that two suites at a time have.
private actor Turns {
    static let shared = Turns()

    private var freePlaces = 2
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func begin() async {
        if freePlaces > 0 {
            freePlaces -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Hands the place on to the suite that has waited longest.
    func end() {
        if waiting.isEmpty { freePlaces += 1 } else { waiting.removeFirst().resume() }
    }
}
