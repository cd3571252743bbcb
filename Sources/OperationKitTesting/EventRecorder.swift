import Foundation
public import OperationKit

/// An observer that writes down each event as a line such as “load: running”, in the order in which events are delivered.
///
/// ```swift
/// let recorder = EventRecorder()
/// let operation = recorder.observe(AsyncOperation())
/// operation.start()
/// // In a test: #expect(recorder.events(of: "AsyncOperation") == ["started", "running", "finished"])
/// print(recorder.events)
/// ```
///
/// These are the lines, behind the name and a colon:
///
/// - “added to sync”, “started”, “running”, “cancelled”
/// - what it waits for, in the words of ``/OperationKit/OperationEvent/Kind/waiting(for:)``: “waiting for exclusive access to “database””,
///   “evaluating its condition “signed in””, “sleeping for 2 s”
/// - “retrying after attempt 1 and 2.0 seconds: busy”, where “busy” is the error
/// - “finished”, “finished: cancelled”, “finished: failures of a, b” for a composite, “finished: busy”. An error with a description of its
///   own is its type, and one of Foundation may have other words on other platforms.
///
/// An operation is finished before the event of its end is delivered, so await ``end(of:)`` where another thread ends it.
public final class EventRecorder: OperationObserver {
    /// Called with each event after it was written down. Tasks that wait for the event go on once the action has returned.
    public typealias Action = @Sendable (_ operation: AsyncOperation, _ event: OperationEvent) -> Void

    private typealias Line = (name: String, text: String, isDelivered: Bool)

    /// The events that tasks wait for, of all recorders.
    static let awaited = Locked<[ObjectIdentifier: String]>([:])

    private let lock = NSLock()
    nonisolated(unsafe) private var lines: [Line] = []
    nonisolated(unsafe) private var expected: [(matches: (Line) -> Bool, gate: Gate)] = []
    private let action: Action

    /// Creates a recorder that observes nothing yet.
    ///
    /// - Parameter action: Called with each event, where the library calls its observers.
    public init(_ action: @escaping Action = { _, _ in }) {
        self.action = action
    }

    /// Writes down an event.
    public func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        var line = (event.name, event.kind.line, isDelivered: false)
        let index = lock.withLock {
            unsafe lines.append(line)
            return unsafe lines.count - 1
        }
        action(operation, event)
        line.isDelivered = true
        let gates = lock.withLock { [line] in
            unsafe lines[index] = line
            let gates = unsafe expected.filter { $0.matches(line) }.map(\.gate)
            unsafe expected.removeAll { $0.matches(line) }
            return gates
        }
        for gate in gates { gate.open() }
    }

    /// Observes an operation, and returns it.
    @discardableResult
    public func observe<Observed: AsyncOperation>(_ operation: Observed) -> Observed {
        operation.addObserver(self)
        return operation
    }

    // MARK: - Reading

    private var recorded: [Line] { lock.withLock { unsafe lines } }

    /// All events, such as “load: cancelled”.
    public var events: [String] { recorded.map { "\($0.name): \($0.text)" } }

    /// The events of one operation, such as “cancelled”.
    public func events(of name: String) -> [String] {
        recorded.filter { $0.name == name }.map(\.text)
    }

    /// The names of the operations that had events, sorted.
    public var names: [String] { Set(recorded.map(\.name)).sorted() }

    // MARK: - Waiting

    /// Suspends until an event was delivered, or the task is cancelled. A hang report names an event that does not come.
    ///
    /// - Parameter event: The event, such as “load: running”.
    public func occurrence(of event: String) async {
        await line(event) { "\($0.name): \($0.text)" == event }
    }

    /// Suspends until the end of an operation was delivered, or the task is cancelled.
    ///
    /// - Parameter name: The name of the operation.
    /// - Returns: All events so far.
    @discardableResult
    public func end(of name: String) async -> [String] {
        await line("\(name): finished") { $0.name == name && $0.text.hasPrefix("finished") }
        return events
    }

    private func line(_ event: String, where matches: @escaping (Line) -> Bool) async {
        let gate = Gate()
        Self.awaited.withLock { $0[ObjectIdentifier(gate)] = event }
        defer { Self.awaited.withLock { $0[ObjectIdentifier(gate)] = nil } }
        lock.withLock {
            let isDelivered = unsafe lines.contains { $0.isDelivered && matches($0) }
            if isDelivered { gate.open() } else { unsafe expected.append((matches, gate)) }
        }
        await gate.opened()
        // Still there if the task was cancelled.
        lock.withLock { unsafe expected.removeAll { $0.gate === gate } }
    }

    /// How many tasks wait for an event.
    var waiterCount: Int { lock.withLock { unsafe expected.count } }
}

extension OperationEvent.Kind {
    /// What has happened, without what differs from run to run.
    package var line: String {
        switch self {
        case .added(_, let name): "added to \(name)"
        case .started: "started"
        case .waiting(let reason): reason
        case .running: "running"
        case .cancelled: "cancelled"
        case .retrying(let attempt, let error, let delay):
            "retrying after attempt \(attempt) and \(delay): \(summary(error))"
        case .finished(nil): "finished"
        case .finished(let error?): "finished: \(summary(error))"
        }
    }
}

/// An error as a short text: its class, or, where it has no description of its own, its value; for that of a compound, its children
/// that have failed.
private func summary(_ error: any Error) -> String {
    switch error {
    case is CancellationError: "cancelled"
    case CompoundOperationError.suboperationFailure(_, let errors):
        "failures of \(errors.map(\.name).joined(separator: ", "))"
    case CompoundOperationError.cancelled(_, let errors, let reason):
        (["cancelled"] + errors.map { "failure of \($0.name)" } + (reason.map { [summary($0)] } ?? []))
            .joined(separator: ", ")
    case is any LocalizedError: "\(type(of: error))"
    default: "\(error)"
    }
}
