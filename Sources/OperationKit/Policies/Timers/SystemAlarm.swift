import Dispatch

/// Calls a closure when time has passed, on a queue of its own. One timer of the system, which is set anew for each time.
///
/// A task that sleeps would not do: on Linux it wakes on a thread of the global queues, whose number is limited, so work that
/// blocks these threads would hold up the deadlines that are to stop it. And a sleep that is cancelled leaves a timer of the system
/// behind, which lasts until the sleep would have ended.
final class SystemAlarm: Sendable {
    /// A timer of the system stands still while the machine is suspended, unlike a `ContinuousClock`. So it never waits longer.
    private static let longestWait = Duration.seconds(60)

    private let source: UncheckedSendable<any DispatchSourceTimer>

    /// Creates an alarm, on a queue of its own.
    init() {
        source = UncheckedSendable(DispatchSource.makeTimerSource(queue: .makeUnoccupied()))
    }

    /// Makes the alarm ring. Called once, before it is set.
    ///
    /// - Parameter rang: Called when the time has come for which the alarm was set last, or earlier; never twice at the same time.
    func activate(_ rang: @escaping @Sendable () -> Void) {
        source.value.setEventHandler(handler: rang)
        source.value.activate()
    }

    deinit {
        source.value.cancel()
    }

    /// Sets the alarm, in place of the time for which it was set before. May be called on any thread, concurrently.
    ///
    /// - Parameter duration: The time until then. It rings earlier if that is long.
    func set(after duration: Duration) {
        let wait = min(max(duration, .zero), Self.longestWait)
        let (seconds, attoseconds) = wait.components
        // Rounded up: it must not ring right before the time.
        let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds + 999_999_999) / 1_000_000_000
        source.value.schedule(deadline: .now() + .nanoseconds(nanoseconds))
    }
}
