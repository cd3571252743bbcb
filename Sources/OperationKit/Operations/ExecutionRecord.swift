import Foundation

/// When and where an operation started to execute. The operation holds it until its end is delivered.
///
/// So if it is released before ``ended()`` was called, the operation was released while executing. The `deinit` of the
/// operation could not report that: the report needs the name, and an override of `name` must not be called on an
/// object that is being freed.
final class ExecutionRecord: @unchecked Sendable {
    let startTime: ContinuousClock.Instant
    let origin: String
    let callStack: [String]
    /// The name that the operation has at its start, or what it is called by instead, unless that follows from its
    /// type.
    private let name: String?
    private let type: AsyncOperation.Type
    private let registry: ExecutionRegistry?
    private let reporter: MisuseReporter?
    /// Whether the end is being delivered. Written and read by threads that come one after the other: the one that delivers it, and the
    /// one that lets go of the object last.
    var hasEnded = false

    /// To be called on the thread that starts the operation, without its lock: its name may be overridden.
    init(
        _ operation: AsyncOperation, _ registry: ExecutionRegistry?, _ reporter: MisuseReporter? = nil,
        at now: ContinuousClock.Instant
    ) {
        startTime = now
        let queue = OperationQueue.current
        if let queue { KnownQueues.shared.insert(queue) }
        origin = ExecutionRecord.place(
            on: queue, isMainThread: Thread.isMainThread, threadName: Thread.current.name)
        name = operation.ownName ?? operation.ownTitle
        type = Swift.type(of: operation)
        callStack = registry == nil ? [] : Thread.callStackSymbols
        self.registry = registry
        self.reporter = reporter
        registry?.started(self, of: operation)
    }

    deinit {
        registry?.ended(self)
        if hasEnded { return }
        (reporter ?? .shared).report(.released(unfinishedOperation))
    }

    /// What is known of the operation, as long as it has not finished.
    private var unfinishedOperation: UnfinishedOperation {
        UnfinishedOperation(
            name: name ?? type.typeTitle, type: type, age: startTime.age(at: .now), origin: origin, callStack: callStack
        )
    }

    /// The operation was ended, because nothing else could end it any more.
    func reportLostFinish(_ error: LostFinishError) {
        (reporter ?? .shared).report(.lostFinish(error, operation: unfinishedOperation))
    }

    /// Where code runs, in words that follow “on”. Names that Foundation and Dispatch give say nothing.
    static func place(
        on queue: OperationQueue?, isMainThread: @autoclosure () -> Bool, threadName: @autoclosure () -> String?
    ) -> String {
        if queue.map({ $0 === OperationQueue.main }) ?? isMainThread() { return "the main thread" }
        let place = queue == nil ? "thread" : "queue"
        let name = queue.map(\.ownName) ?? ownName(ofThread: threadName())
        return name.map { "the \(place) “\($0)”" } ?? "a \(place) without a name"
    }

    /// On Linux, Dispatch calls its threads by the ends of labels such as “com.apple.root.default-qos.overcommit”.
    private static func ownName(ofThread name: String?) -> String? {
        guard let name, !name.isEmpty, !name.hasSuffix("-qos"), !name.hasSuffix("-qos.overcommit") else { return nil }
        return name
    }
}

extension ContinuousClock.Instant {
    /// The time that has passed; zero if `now` was read before.
    func age(at now: Self) -> Duration {
        max(now - self, .zero)
    }
}

/// All operations that are executing and that users may know, without keeping them alive.
final class ExecutionRegistry: Sendable {
    private typealias Entry = (operation: WeakReference<AsyncOperation>, startTime: ContinuousClock.Instant)

    private let entries = Locked<[ObjectIdentifier: Entry]>([:])

    func started(_ execution: ExecutionRecord, of operation: AsyncOperation) {
        let entry = (WeakReference(operation), execution.startTime)
        entries.withLock { $0[ObjectIdentifier(execution)] = entry }
    }

    func ended(_ execution: ExecutionRecord) {
        entries.withLock { $0[ObjectIdentifier(execution)] = nil }
    }

    func operations(executingLongerThan age: Duration, at now: ContinuousClock.Instant) -> [AsyncOperation] {
        // Release the operations after unlocking; their deinitializers may remove an entry.
        let found = entries.withLock { entries in entries.values.map { ($0.operation.object, $0.startTime) } }
        return found.filter { $0.1.age(at: now) > age }.sorted { $0.1 < $1.1 }.compactMap(\.0)
            .filter { !$0.withState(\.isHidden) }
    }
}

/// How much this process records of the operations that execute: what the environment variable
/// `OPERATIONKIT_DIAGNOSTICS` says.
enum ExecutionRecording: String {
    case off
    /// When and where they started.
    case starts
    /// The call stacks of their starts, too.
    case all

    static let current = Self(environment: ProcessInfo.processInfo.environment)

    /// All operations that are executing, if they are recorded.
    static let registry = current == .all ? ExecutionRegistry() : nil

    init(environment: [String: String]) {
        #if DEBUG
        let usual = Self.starts
        #else
        let usual = Self.off
        #endif
        self = environment["OPERATIONKIT_DIAGNOSTICS"].flatMap(Self.init) ?? usual
    }

    /// Reports a mistake, unless nothing is recorded.
    static func report(_ report: MisuseReport) {
        if current == .off { return }
        MisuseReporter.shared.report(report)
    }

    /// What is recorded of an operation that is about to execute. To be called on the thread that starts it.
    static func record(of operation: AsyncOperation) -> ExecutionRecord? {
        current == .off ? nil : ExecutionRecord(operation, registry, at: .now)
    }
}

/// The operation queues that the library has seen at work, without keeping them alive.
///
/// Foundation does not say which queue an operation is on; only a queue says which operations are on it.
final class KnownQueues: Sendable {
    static let shared = KnownQueues()

    let entries = Locked<[ObjectIdentifier: WeakReference<OperationQueue>]>([:])

    /// An operation starts on the queue, or the library adds one to it.
    func insert(_ queue: OperationQueue) {
        if queue is PrivateQueue { return }
        _ = entries.withLock { entries in
            let id = ObjectIdentifier(queue)
            // Forget those that are gone instead of growing, if there are any.
            let isNew = entries[id]?.object == nil
            let present = isNew && entries.count == entries.capacity ? KnownQueues.present(in: &entries) : []
            if isNew { entries[id] = WeakReference(queue) }
            return present
        }
    }

    /// Forgets the queues that are gone.
    ///
    /// - Returns: The others, to be released after unlocking; their deinitializers may run arbitrary code.
    private static func present(in entries: inout [ObjectIdentifier: WeakReference<OperationQueue>]) -> [OperationQueue]
    {
        let present = entries.compactMapValues(\.object)
        if present.count < entries.count { entries = entries.filter { present[$0.key] != nil } }
        return Array(present.values)
    }

    /// Those that have not gone.
    var queues: [OperationQueue] { entries.withLock { KnownQueues.present(in: &$0) } }

    /// The queue that an operation is on, if it is one of those that are known, the main queue or the current one.
    ///
    /// Complexity: linear in the operations on these queues.
    func queue(of operation: Operation) -> OperationQueue? {
        ([OperationQueue.current, OperationQueue.main].compactMap { $0 } + queues).first {
            $0.addedOperations.contains { $0 === operation }
        }
    }
}

/// An operation that had not finished when something went wrong with it.
public struct UnfinishedOperation: Sendable, CustomStringConvertible {
    /// The name that it had when it started, or else what errors call it: its type, in most cases.
    public let name: String
    /// Its type.
    public let type: AsyncOperation.Type
    /// How long it had been executing then.
    public let age: Duration
    /// Where it was started: the name of the operation queue, or of the thread.
    public let origin: String
    /// The call stack of its start, if ``OperationDiagnostics/level-swift.type.property`` is
    /// ``OperationDiagnostics/Level/all``. Otherwise it is empty.
    public let callStack: [String]

    /// A sentence with all of this, for an operation that was released.
    public var description: String {
        text(
            "OperationKit: “\(name)” (\(type.typeTitle)) was released while executing, after \(age.shortText), without having finished. It was started on \(origin). Keep it alive until it finishes: let its work hold it, or keep a reference to it.",
            above: callStack)
    }
}

/// A sentence, and a call stack below it.
func text(_ sentence: String, above callStack: [String]) -> String {
    ([sentence.onOneLine] + callStack.map { "    \($0)" }).joined(separator: "\n")
}
