package import Testing

/// Lets two of the suites that have it run at a time, while all other suites go on.
///
/// Explorers want a processor for themselves. All of them together would keep the tests waiting that only
/// wait for a gate. A suite that has this trait must not be inside another one that has it, too.
package struct TakesTurns: SuiteTrait, TestScoping {
    private static let places = Places(2)

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await Self.places.withPlace(function)
    }
}

extension Trait where Self == TakesTurns {
    /// The suite takes turns with all others that have this trait.
    package static var takesTurns: Self { TakesTurns() }
}
