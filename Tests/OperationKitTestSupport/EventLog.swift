import Foundation

/// What happened, in the order in which it happened, written from any thread.
package final class EventLog: Sendable {
    private let entries = Shared<[String]>([])

    package init() {}

    package func add(_ event: String) { entries.change { $0.append(event) } }

    package var events: [String] { entries.value }

    package func count(of event: String) -> Int { events.count { $0 == event } }
}

/// A value that several threads read and change.
package final class Shared<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var storage: Value

    package init(_ value: Value) {
        storage = value
    }

    package var value: Value {
        get { lock.withLock { storage } }
        set { change { $0 = newValue } }
    }

    /// Reads and changes the value in one step.
    package func change<Answer>(_ body: (inout Value) -> Answer) -> Answer {
        lock.withLock { body(&storage) }
    }
}

extension Shared where Value == Int {
    /// Adds 1, and returns the sum.
    package func increment() -> Int {
        change {
            $0 += 1
            return $0
        }
    }
}
