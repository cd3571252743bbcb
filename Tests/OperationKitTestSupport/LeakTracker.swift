import Dispatch
import Foundation
package import Testing

/// Knows objects without keeping them alive, and expects at the end of a test that all of them are gone.
package final class LeakTracker: Sendable {
    private struct Entry {
        weak var object: AnyObject?
        let label: String
    }

    private let entries = Shared<[Entry]>([])

    package init() {}

    /// Watches an object, and returns it.
    @discardableResult
    package func track<Object: AnyObject>(_ object: Object, _ label: String? = nil) -> Object {
        let entry = Entry(object: object, label: label ?? String(describing: Object.self))
        entries.change { $0.append(entry) }
        return object
    }

    /// An object to capture in a closure: it is gone when the closure is.
    package func token(_ label: String) -> Token { track(Token(), label) }

    package typealias Token = Released

    /// What is still alive.
    package var alive: [String] { entries.value.filter { $0.object != nil }.map(\.label) }

    /// Waits until everything is gone. Foundation lets go of an operation some time after its end, on another thread,
    /// so this hands the processor to other threads again and again, up to a deadline.
    package func expectAllReleased(_ location: SourceLocation = #_sourceLocation) async {
        await eventually("still alive: \(alive)", location) { self.alive.isEmpty }
        entries.value = []
    }
}

/// Waits for something that comes to be on other threads without a notification. Not for ordering: use a ``Gate`` there.
package func eventually(
    _ failure: @autoclosure () -> String, _ location: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async {
    let deadline = Date(timeIntervalSinceNow: hangTimeout)
    var looks = 0
    while !condition() {
        looks += 1
        if Date() > deadline {
            Issue.record("\(failure())", sourceLocation: location)
            return
        }
        await withCheckedContinuation { continuation in
            // What takes longer is not to take the processor from what is waited for.
            let pause = looks < 20 ? 0 : 1
            DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(pause)) {
                continuation.resume()
            }
        }
    }
}

/// Counts tokens that are alive, and how many were at most.
package final class TokenCount: Sendable {
    private let counts = Shared((alive: 0, most: 0))

    package init() {}

    package var alive: Int { counts.value.alive }
    package var most: Int { counts.value.most }

    package func token() -> Released {
        counts.change { $0 = ($0.alive + 1, max($0.most, $0.alive + 1)) }
        return Released { [counts] in counts.change { $0.alive -= 1 } }
    }

    /// Returns a value, after others had their turn while there was one token more.
    package func hold<Value>(_ value: Value) async -> Value {
        let token = token()
        await Task.yield()
        return withExtendedLifetime(token) { value }
    }
}
