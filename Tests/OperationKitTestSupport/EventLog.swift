import Foundation

/// What happened, in the order in which it happened, written from any thread.
final class EventLog: @unchecked Sendable {
    private let lock = NSLock()
    private var entries: [String] = []

    func add(_ event: String) {
        lock.withLock { entries.append(event) }
    }

    var events: [String] { lock.withLock { entries } }

    func count(of event: String) -> Int {
        events.count { $0 == event }
    }

    /// Empties the log.
    func clear() {
        lock.withLock { entries = [] }
    }
}

/// A value that several threads read and change.
final class Shared<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var storage: Value

    init(_ value: Value) {
        storage = value
    }

    var value: Value {
        get { lock.withLock { storage } }
        set { change { $0 = newValue } }
    }

    /// Reads and changes the value in one step.
    func change<Answer>(_ body: (inout Value) -> Answer) -> Answer {
        lock.withLock { body(&storage) }
    }
}
