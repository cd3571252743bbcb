package import Foundation
package import OperationKit
package import OperationKitTesting
package import Testing

/// How long a wait that blocks a thread, or that cannot be cancelled, lasts at most before it is reported as a failure.
package let hangTimeout: TimeInterval = 200

extension Gate {
    /// Blocks the calling thread until the gate is open.
    ///
    /// - Returns: Whether the gate was opened in time; otherwise an issue is recorded too.
    @available(*, noasync)
    @discardableResult
    package func pass(_ location: SourceLocation = #_sourceLocation) -> Bool {
        let isOpen = pass(within: .seconds(hangTimeout))
        if !isOpen { Issue.record("The gate was not opened.", sourceLocation: location) }
        return isOpen
    }
}

/// Work that blocks its thread until the test lets it end.
package struct HeldWork: Sendable {
    package let begun = Gate()
    package let mayEnd = Gate()

    package init() {}

    @available(*, noasync)
    package func callAsFunction() {
        begun.open()
        mayEnd.pass()
    }
}

extension ManualClock {
    /// Expects that soon no task sleeps.
    package func expectNoSleepers(_ location: SourceLocation = #_sourceLocation) async {
        await eventually("the clock is slept on until \(deadlines)", location) { deadlines.isEmpty }
    }
}

extension EventRecorder {
    /// Expects that the end of each operation is before that of the composite to which it was added.
    ///
    /// - Parameters:
    ///   - parents: By name, the composite that contains it.
    ///   - location: Where a violation is reported.
    package func expectEndsBeforeParents(_ parents: [String: String], _ location: SourceLocation = #_sourceLocation) {
        let events = events
        func end(of name: String) -> Int { events.firstIndex { $0.hasPrefix("\(name): finished") } ?? .max }
        for (child, parent) in parents {
            #expect(
                end(of: child) < end(of: parent), "\(child) ends after \(parent): \(events)", sourceLocation: location)
        }
    }
}

/// A clock that returns from each sleep immediately, and whose time does not change: a value, without an identity.
package struct StandingClock: Clock {
    package init() {}

    package var now: ManualClock.Instant { .init(offset: .zero) }
    package var minimumResolution: Duration { .zero }
    package func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {}
}

/// Suspends until the task is cancelled. `Task.sleep` would leave its timer behind, which counts as a leak.
package func cancellation() async throws -> Never {
    let (never, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in never {}
    withExtendedLifetime(continuation) {}
    throw CancellationError()
}

extension OperationEvent {
    package var isEnd: Bool { if case .finished = kind { true } else { false } }
    package var isRunning: Bool { if case .running = kind { true } else { false } }
}

/// Runs a body in a task that was cancelled before.
package func inCancelledTask<Answer: Sendable>(
    _ body: @escaping @Sendable () async throws -> Answer
) async throws -> Answer {
    let task = Task {
        try? await cancellation()
        return try await body()
    }
    task.cancel()
    return try await task.value
}

/// Calls a closure when it is released.
package final class Released: Sendable {
    private let body: @Sendable () -> Void

    package init(_ body: @escaping @Sendable () -> Void = {}) { self.body = body }

    deinit { body() }

    /// Does nothing: a closure that calls this holds the object.
    package func use() {}
}
