public import Foundation

/// An operation whose work is an `async` function that runs other operations as its children.
///
/// ```swift
/// let workflow = WorkflowOperation(name: "count") { flow in
///     let text = try await flow.run(TaskOperation(name: "read") { "one two three" })
///     async let words = flow.run(IOBlockOperation<String, Int>(name: "words") { $0.split(separator: " ").count }.with(input: text))
///     async let bytes = flow.run(IOBlockOperation<String, Int>(name: "bytes") { $0.utf8.count }.with(input: text))
///     return try await (words, bytes)
/// }
/// let (words, bytes) = try await OperationQueue().run(workflow)
/// assert(words == 3 && bytes == 13)
/// ```
///
/// Suppose the next step depends on what the last one has returned: pages until there are no more, one of two servers, a step
/// that may fail. In a workflow that is a loop, an `if` or a `do`/`catch`. The body gets a ``Workflow``, whose
/// ``Workflow/run(_:progress:)->_`` runs an operation and returns its output. If the workflow has an input, the body gets that
/// first: `WorkflowOperation<URL, Data> { url, flow in … }`.
///
/// ## Children
///
/// What the body runs, and what ``addOperation(_:)`` adds, are children, as those of a ``CompoundOperation`` are. They start on
/// threads of a private queue, within ``maxConcurrentOperationCount``, not while the workflow ``isSuspended``, and are released
/// when they have ended. The body takes no place of the limit. A workflow of any number of steps holds only those that run.
///
/// ## How it ends
///
/// It ends when the body has returned and all children have ended.
///
/// | What happens | How the workflow ends |
/// |---|---|
/// | the body returns | with that output |
/// | the body throws | with that error; children that still run are cancelled |
/// | a child that `run` waits for fails | as the body decides: `run` throws the child's error |
/// | a child fails that other code has added | with a ``CompoundOperationError``, if the body returns |
/// | it is cancelled | the children and the task of the body are cancelled; as the body decides, with the reason in place of `CancellationError` |
/// | `finish(with:)` or `finish(withError:)` is called on it | with that outcome; the children and the task of the body are cancelled |
///
/// The body runs in one task, which may begin on the thread that starts the workflow, and goes on on threads of the library or of the
/// private queue. It may suspend, but must not block. In it, `Task.isCancelled` says whether the workflow is cancelled; a body that
/// cancels its own task cancels the workflow when it returns. It is called once, not if the workflow is cancelled before its `main()`,
/// and is released when it returns. It does not see task-local values: `run(name:_:)` of `OperationQueue` keeps them.
///
/// The ``AsyncOperation/progress`` is 0 until the end, apart from the shares that `run` is given.
public final class WorkflowOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>,
    @unchecked Sendable
{
    private let scheduler: ChildScheduler

    /// Creates an operation that runs an `async` function on an input.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - maxConcurrentOperationCount: How many children may run at the same time. The default leaves it to the system. Traps
    ///     if it is another negative number.
    ///   - body: The function. It gets the input, and what it runs operations with.
    public init(
        name: String? = nil, maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        _ body: @escaping @Sendable (_ input: Input, _ flow: Workflow) async throws -> Output
    ) {
        CompoundOperation.requireLimit(maxConcurrentOperationCount, of: name ?? "WorkflowOperation")
        scheduler = ChildScheduler(limit: maxConcurrentOperationCount, body: CompositeBody())
        super.init()
        self.name = name
        scheduler.changeProgress { $0.added(Workflow.unitCount) }
        // The scheduler has the body, and must not be held by it: there may be no run that lets go of it.
        becomeComposite(of: scheduler) { [unowned scheduler] input in
            try await body(input, Workflow(children: scheduler))
        }
    }

    /// Creates an operation that runs an `async` function.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - maxConcurrentOperationCount: How many children may run at the same time. The default leaves it to the system. Traps
    ///     if it is another negative number.
    ///   - body: The function. It gets what it runs operations with.
    public convenience init(
        name: String? = nil, maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        _ body: @escaping @Sendable (_ flow: Workflow) async throws -> Output
    ) where Input == Void {
        self.init(name: name, maxConcurrentOperationCount: maxConcurrentOperationCount) { _, flow in
            try await body(flow)
        }
    }

    /// Unavailable: a workflow with an input has a closure of two parameters.
    @available(*, unavailable, message: "a workflow with an input takes a closure of the form { input, flow in … }")
    public convenience init(
        name: String? = nil, maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        _ body: @escaping @Sendable (_ flow: Workflow) async throws -> Output
    ) {
        fatalError()
    }

    /// Unavailable: a workflow without an input has a closure of one parameter.
    @available(*, unavailable, message: "a workflow without an input takes a closure of the form { flow in … }")
    public convenience init(
        name: String? = nil, maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
        _ body: @escaping @Sendable (_ input: Input, _ flow: Workflow) async throws -> Output
    ) where Input == Void {
        fatalError()
    }

    /// Does nothing: the body is called by `start()`.
    public override func main(input: Input) {}

    /// How many children may run at the same time. See ``CompoundOperation/maxConcurrentOperationCount``.
    public var maxConcurrentOperationCount: Int {
        get { scheduler.limit }
        set {
            CompoundOperation.requireLimit(newValue, of: displayName)
            scheduler.limit = newValue
        }
    }

    /// Whether children are kept from starting. Those that run go on, and so does the body, up to the next child that it waits for.
    ///
    /// May change at any time. A suspended workflow that is cancelled ends nevertheless.
    public var isSuspended: Bool {
        get { scheduler.isSuspended }
        set { scheduler.isSuspended = newValue }
    }

    /// Adds a child that the body does not wait for.
    ///
    /// May be called from any thread, before the start or while the workflow runs. The workflow ends after it, and fails if it does.
    /// If the workflow was cancelled, so is the child.
    ///
    /// - Parameter operation: An operation that the workflow alone starts.
    /// - Throws: ``CompoundAdditionError``, or ``CompoundOperationError/dependencyCycle(name:path:)``. The operation is untouched then.
    /// - Precondition: The operation is not this workflow, nor one that contains it.
    public func addOperation(_ operation: Operation) throws {
        try scheduler.add([operation], weight: 0, to: self)
    }

    override var waitDescription: String? { scheduler.body?.waitDescription }
}

/// What the body of a ``WorkflowOperation`` runs operations with.
public struct Workflow: Sendable {
    static let unitCount: Int64 = 1_000_000

    let children: ChildScheduler

    /// Runs an operation as a child of the workflow, and returns its output when it has ended.
    ///
    /// Several tasks may call it at the same time: `async let page = flow.run(fetch)`. Cancelling the task that calls it cancels the
    /// child, and the call returns when that has ended. Call it in the body: a child that calls it keeps its own place meanwhile, so with
    /// a limit it may wait for ever.
    ///
    /// - Parameters:
    ///   - operation: An operation that has its input, is part of no other operation, and is started by the workflow only.
    ///   - progress: Its share in the progress of the workflow, from 0 to 1. Shares beyond 1 in all do not count.
    /// - Returns: The output of the operation.
    /// - Throws: The error of the operation, which is no failure of the workflow if the body catches it; or ``CompoundAdditionError`` or
    ///   ``CompoundOperationError/dependencyCycle(name:path:)``, if it cannot be added or the body has returned.
    @discardableResult
    public func run<ChildInput, ChildOutput>(
        _ operation: IOOperation<ChildInput, ChildOutput>, progress: Double = 0
    ) async throws -> ChildOutput {
        try await wait(for: operation, progress: progress)
        if let output = operation.output { return output }
        throw operation.error ?? operation.missingOutput
    }

    /// Runs an operation of any class as a child of the workflow, and returns when it has ended.
    ///
    /// Does what ``run(_:progress:)->_`` does.
    ///
    /// - Parameters:
    ///   - operation: An operation that is part of no other operation, and is started by the workflow only.
    ///   - progress: Its share in the progress of the workflow, from 0 to 1.
    /// - Throws: The error of the operation, `CancellationError` for one that was cancelled and reports no errors, or
    ///   ``CompoundAdditionError`` or ``CompoundOperationError/dependencyCycle(name:path:)``.
    public func run(_ operation: some Operation, progress: Double = 0) async throws {
        try await wait(for: operation, progress: progress)
        if let error = operation.endingError { throw error }
    }

    /// Suspends for some time, which is a wait for descriptions and timelines. No thread waits.
    ///
    /// If several sleeps overlap, it is that of the latest ones which is not over.
    ///
    /// ``AsyncOperation/clock`` of the workflow measures the time, also while the workflow is suspended.
    ///
    /// - Parameter duration: The time.
    /// - Throws: `CancellationError` immediately, when the task that calls it is cancelled, as that of the body is with the workflow, and
    ///   if the body has returned before the call.
    public func sleep(for duration: Duration) async throws {
        guard let body = children.body, let workflow = children.operation, !body.hasEnded else {
            throw CancellationError()
        }
        guard duration > .zero else { return try Task.checkCancellation() }
        let description = "sleeping for \(duration.shortText)"
        body.sleepBegan(description)
        var isAnnounced = false
        defer { if body.sleepEnded(description), isAnnounced { workflow.emit(body.waitEvent) } }
        try await workflow.clock.pause(for: duration) {
            isAnnounced = true
            workflow.emit(body.waitEvent)
        }
    }

    private func wait(for operation: Operation, progress: Double) async throws {
        // In this order, what is not a number counts as 0.
        let weight = Int64(min(1, max(0, progress)) * Double(Self.unitCount))
        // One that belongs elsewhere, or comes too late, is not cancelled.
        try children.requireNew(operation)
        try await withCancellationDelivered { [children] in
            // The thread that cancels the workflow cancels its children, too.
            if operation.isPart(of: children) ? !children.isStopped : operation.setParent(nil, from: nil) {
                operation.cancel()
            }
        } during: {
            try await children.runChild(operation, weight: weight)
        }
    }
}
