#if DEBUG
import Dispatch
import Foundation

@testable package import OperationKit

/// Runs an action once, when the observed thread comes to the place with a certain number, of those at which it holds no
/// lock of the library.
///
/// With a number that the thread does not reach the action does not run, so a test can go through all places in a loop:
///
/// ```swift
/// for place in 0..<Interruption.bound {
///     let interruption = Interruption(at: place) { … }
///     SchedulingProbe.observed(by: interruption) { … }
///     if !interruption.hasRun { break }
/// }
/// ```
package final class Interruption: SchedulingProbe.Observer {
    /// More places than any single call of the library has.
    package static let bound = 200

    private let number: Int
    private let action: () -> Void
    private var passed = 0
    /// How many locks the thread holds, of the library or of the runtime. Where there are any, no other thread could do its
    /// part.
    private var held = 0
    package private(set) var hasRun = false
    package let heedsOthers: Bool

    /// Creates an interruption by an action, which runs on the observed thread. What another thread would do belongs
    /// in `answersOnAnotherThread`. A thread that heeds no others does nothing for observers of operations.
    package init(at number: Int, heedsOthers: Bool = false, _ action: @escaping () -> Void) {
        self.number = number
        self.heedsOthers = heedsOthers
        self.action = action
    }

    package func reached(_ place: SchedulingProbe.Place) {
        switch place {
        case .unlocked, .handlerEnded: held -= 1
        case .handlerBegan: held += 1
        case .locking, .willChange, .didChange, .told: break
        }
        if held == 0, !hasRun {
            hasRun = passed == number
            if hasRun { action() }
            passed += 1
        }
        if case .locking = place { held += 1 }
    }
}

extension SchedulingProbe.Observer {
    package var heedsOthers: Bool { false }

    package func makeQueue() -> CompositeQueue { CompositeQueue() }

    package func runWorker(_ work: @escaping @Sendable () -> Void) { elsewhere(work) }
}
#endif
