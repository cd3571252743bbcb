/// A clock without its type, whose time is the duration since it was made a source.
struct TimeSource: Sendable {
    /// The time that has passed.
    let now: @Sendable () -> Duration
    /// Suspends until so much time has passed. Throws if the task is cancelled before.
    let sleep: @Sendable (_ deadline: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
