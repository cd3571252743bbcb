package import OperationKit
package import Testing

/// An observer that writes down each event as a line such as “load: running”, in the order in which events are delivered.
///
/// ```swift
/// let recorder = EventRecorder()
/// let operation = recorder.observe(AsyncOperation())
/// operation.start()
/// #expect(recorder.events == ["AsyncOperation: started", "AsyncOperation: running", "AsyncOperation: finished"])
/// ```
///
/// An operation is finished before the event of its end is delivered, so await ``end(of:)`` where another thread ends it.
package final class EventRecorder: OperationObserver {
    /// Called with each event after it was written down.
    package typealias Action = @Sendable (_ operation: AsyncOperation, _ event: OperationEvent) -> Void

    private let lines = Shared<[(name: String, text: String)]>([])
    private let action: Action

    /// Creates a recorder that observes nothing yet.
    ///
    /// - Parameter action: Called with each event, where the library calls its observers.
    package init(_ action: @escaping Action = { _, _ in }) {
        self.action = action
    }

    package func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        lines.change { $0.append((event.name, event.kind.line)) }
        action(operation, event)
    }

    /// Observes an operation, and returns it.
    package func observe<Observed: AsyncOperation>(_ operation: Observed) -> Observed {
        operation.addObserver(self)
        return operation
    }

    // MARK: - Reading

    /// All events, such as “load: cancelled”.
    package var events: [String] { lines.value.map { "\($0.name): \($0.text)" } }

    /// The events of one operation, such as “cancelled”.
    package func events(of name: String) -> [String] {
        lines.value.filter { $0.name == name }.map(\.text)
    }

    /// The names of the operations that had events, sorted.
    package var names: [String] { Set(lines.value.map(\.name)).sorted() }

    /// Suspends until an event was delivered.
    ///
    /// - Parameters:
    ///   - event: The event, such as “load: running”.
    ///   - location: Where it is reported if it doesn't come.
    package func occurrence(of event: String, _ location: SourceLocation = #_sourceLocation) async {
        await eventually("“\(event)” is not among \(events)", location) { events.contains(event) }
    }

    /// Suspends until the end of an operation was delivered, and returns all events.
    @discardableResult
    package func end(of name: String, _ location: SourceLocation = #_sourceLocation) async -> [String] {
        await eventually("“\(name)” does not end: \(events)", location) {
            events(of: name).contains { $0.hasPrefix("finished") }
        }
        return events
    }

    /// Expects that the end of each operation is before that of the composite to which it was added.
    ///
    /// - Parameters:
    ///   - parents: By name, the composite that contains it.
    ///   - location: Where a violation is reported.
    package func expectEndsBeforeParents(_ parents: [String: String], _ location: SourceLocation = #_sourceLocation) {
        var ends: [String: Int] = [:]
        for (position, line) in lines.value.enumerated() where line.text.hasPrefix("finished") {
            ends[line.name] = position
        }
        for (child, parent) in parents {
            #expect(
                ends[child] ?? .max < ends[parent] ?? .max, "\(child) ends after \(parent): \(events)",
                sourceLocation: location)
        }
    }
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

/// An error as a short text: for that of a composite, which of its children have failed.
private func summary(_ error: any Error) -> String {
    switch error {
    case is TestError, is CancellationError: text(error)
    case CompoundOperationError.suboperationFailure(_, let errors):
        "failures of \(errors.map(\.name).joined(separator: ", "))"
    case CompoundOperationError.cancelled(_, let errors, let reason):
        (["cancelled"] + errors.map { "failure of \($0.name)" } + (reason.map { [summary($0)] } ?? []))
            .joined(separator: ", ")
    default: "\(type(of: error))"
    }
}
