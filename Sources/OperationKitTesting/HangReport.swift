public import Foundation
public import OperationKit

/// What executes when a test has taken too long.
public struct HangError: LocalizedError, CustomNSError, CustomStringConvertible, ReportedError {
    /// How long the test had taken.
    public let duration: Duration
    /// The operations that had not finished, each with what it waits for, those inside it below it; then the queues with operations that
    /// had not been started, and the events for which tests wait with an ``EventRecorder``.
    public let tree: String

    /// The duration and the tree.
    public var description: String {
        "The test has not ended after \(duration). These operations have not finished:\n"
            + (tree.isEmpty ? "  none that is known: an operation was not started, or other code hangs" : tree)
    }

    package func text(depth: Int) -> String { description }
}

/// Runs the body of a test, and says what hangs if it takes too long.
///
/// ```swift
/// try await withHangReport(after: .seconds(5)) {
///     let load = TaskOperation(name: "load") { "page" }
///     print(try await OperationQueue().run(load))
/// }
/// ```
///
/// When the time is over, the tree of the operations that have started in the meantime and have not finished is written to standard error, with
/// what is on the queues where operations wait to be started, and the task of the body is cancelled. Awaited operations are cancelled with
/// it, so the body usually ends, and the call throws a ``HangError`` with the same tree. Work that ignores cancellations keeps the body from
/// ending; the report is there nevertheless. It names an operation that holds a lock which its `isFinished` takes, without saying more.
///
/// A queue is known once an `AsyncOperation` has started on it, or `run(_:)` has been called, unless nothing is recorded: in
/// release builds, set `OPERATIONKIT_DIAGNOSTICS=starts`. Otherwise, operations of other classes appear only inside a composite. Those of
/// tests that run at the same time appear, too.
///
/// - Parameters:
///   - limit: How long the body may take.
///   - body: The body of the test.
/// - Returns: What the body returns.
/// - Throws: What the body throws, or a ``HangError`` if it took too long.
public func withHangReport<Value: Sendable>(
    after limit: Duration, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let watch = HangWatch(after: limit)
    defer { watch.stop() }
    let task = Task { try await body() }
    watch.onHang { _ in task.cancel() }
    let result = await withTaskCancellationHandler {
        await task.result
    } onCancel: {
        task.cancel()
    }
    if let error = watch.error { throw error }
    return try result.get()
}

/// Says what hangs if a test takes too long: the form for tests that are not asynchronous, such as those of XCTest.
///
/// ```swift
/// let watch = HangWatch(after: .seconds(5))
/// defer { watch.stop() }
/// OperationQueue().addOperation(TaskOperation { 1 })
/// ```
///
/// When the time is over, the operations that have started in the meantime and have not finished are written to standard error, with what is on
/// the queues where operations wait to be started.
public final class HangWatch: @unchecked Sendable {
    private let lock = NSLock()
    private let stopped = Gate()
    private var report: HangError?
    private var isOver = false
    private var handler: (@Sendable (HangError) -> Void)?
    private let running = RunningOperations()

    /// Begins to watch.
    ///
    /// - Parameter limit: How long the test may take.
    public init(after limit: Duration) {
        AsyncOperation.addGlobalObserver(running)
        // A thread of its own: what hangs may have taken all others.
        Thread { [stopped, weak self] in
            if !stopped.pass(within: limit) { self?.timePassed(limit) }
        }.start()
    }

    deinit { stop() }

    /// The report, if the test has taken too long.
    public var error: HangError? { lock.withLock { report } }

    /// Ends the watch. A report that is being made may still be written.
    public func stop() {
        stopped.open()
        lock.withLock {
            isOver = true
            handler = nil
        }
        AsyncOperation.removeGlobalObserver(running)
    }

    func onHang(_ body: @escaping @Sendable (HangError) -> Void) {
        let known = lock.withLock { () -> HangError? in
            if report == nil, !isOver { handler = body }
            return report
        }
        if let known { body(known) }
    }

    private func timePassed(_ limit: Duration) {
        if lock.withLock({ isOver }) { return }
        let error = HangError(duration: limit, tree: running.tree)
        let (handler, isReported) = lock.withLock { () -> ((@Sendable (HangError) -> Void)?, Bool) in
            guard !isOver else { return (nil, false) }
            report = error
            return (self.handler.take(), true)
        }
        guard isReported else { return }
        writeToStandardError("\(error)")
        handler?(error)
    }
}

/// The operations of the process that have started and have not finished.
private final class RunningOperations: OperationObserver, @unchecked Sendable {
    private struct Entry {
        /// As in its event: it may take a lock to ask the operation.
        let name: String
        /// An object holds it: a copy of a weak reference may be the last one to release the operation, with the lock held.
        let operation: Reference<WeakReference<AsyncOperation>>
    }

    private let lock = NSLock()
    private var entries: [OperationID: Entry] = [:]

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        lock.withLock {
            switch event.kind {
            case .started:
                entries[event.operation] = Entry(name: event.name, operation: Reference(WeakReference(operation)))
            case .finished: entries[event.operation] = nil
            case .added, .waiting, .running, .cancelled, .retrying: break
            }
        }
    }

    /// The descriptions of those that are inside no other one, of queues with others that have not been started, and awaited events.
    var tree: String {
        let operations = lock.withLock { entries }.compactMapValues { entry in
            entry.operation.value.object.map { (name: entry.name, operation: $0) }
        }
        // A composite may have got its children before the watch began, so they are asked for it.
        let outermost = operations.filter { _, entry in
            entry.operation.enclosingComposite.map { operations[$0.observationID] == nil } ?? true
        }
        let running = outermost.sorted { $0.key < $1.key }.map { _, entry in
            let (name, operation) = entry
            return Self.answer(from: "“\(name)”") {
                let text = operation.debugDescription
                // It may have ended meanwhile. Its end may be about to be delivered.
                return operation.isFinished ? "" : text
            }
        }
        let waiting = Self.answer(from: "What is on the queues") {
            OperationDiagnostics.queuesWithUnstarted.map(OperationDiagnostics.description).sorted()
                .joined(separator: "\n")
        }
        let awaited = EventRecorder.awaited.withLock { $0.values.sorted() }.map { "a test waits for the event “\($0)”" }
        return (running + [waiting] + awaited).flatMap { $0.split(separator: "\n") }.map { "  \($0)" }
            .joined(separator: "\n")
    }

    /// Asks on a thread of its own, which stays behind if there is no answer: what hangs may hold the lock that its
    /// `isFinished` takes.
    private static func answer(from name: String, _ question: @escaping @Sendable () -> String) -> String {
        let answer = Locked<String?>(nil)
        Thread {
            let text = question()
            answer.withLock { $0 = text }
        }.start()
        _ = Patience.wait(.seconds(1)) { answer.withLock { $0 != nil } }
        return answer.withLock(\.self) ?? "\(name): does not say what it does, and may hold a lock that this needs"
    }
}
