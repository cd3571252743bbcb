import Foundation
package import Testing

/// Lets few tests run at a time, and fails those that hang.
///
/// The test library begins all tests at the same time. Thousands that wait for each other's threads take three times as long as few, and
/// a limit of time would count the waiting.
package struct HangGuard: SuiteTrait, TestTrait, TestScoping {
    /// For how long a test may run once it has begun: far longer than any takes, also with a sanitizer on a busy machine.
    private static let limit = Duration.seconds(600)

    private static let places = Places(max(4, 2 * ProcessInfo.processInfo.activeProcessorCount))

    /// Whether the suite around a test has a place already.
    @TaskLocal private static var hasPlace = false

    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        if Self.hasPlace { return try await function() }
        try await Self.places.withPlace {
            try await withoutActuallyEscaping(function) { function in
                try await withThrowingTaskGroup { group in
                    group.addTask { try await Self.$hasPlace.withValue(true) { try await function() } }
                    group.addTask {
                        try await Task.sleep(for: Self.limit)
                        Issue.record("The test has not ended after \(Self.limit).", sourceLocation: test.sourceLocation)
                    }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        }
    }
}

extension Trait where Self == HangGuard {
    /// What hangs fails with its name, and only some tests run at a time.
    package static var hangGuard: Self { HangGuard() }
}

/// Places that some tests, or suites, have at a time.
package actor Places {
    private var freePlaces: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(_ count: Int) {
        freePlaces = count
    }

    /// Runs a function in a place, after those that have asked before.
    package nonisolated func withPlace(_ function: @Sendable () async throws -> Void) async throws {
        await take()
        do {
            try await function()
        } catch {
            await giveBack()
            throw error
        }
        await giveBack()
    }

    private func take() async {
        if freePlaces > 0 {
            freePlaces -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func giveBack() {
        if waiting.isEmpty { freePlaces += 1 } else { waiting.removeFirst().resume() }
    }
}

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
