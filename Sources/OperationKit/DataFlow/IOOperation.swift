import Foundation

/// An asynchronous operation with a typed input and a typed output.
///
/// ```swift
/// final class Measure: IOOperation<String, Int>, @unchecked Sendable {
///     override func main(input: String) { finish(with: input.count) }
/// }
///
/// let measure = Measure()
/// measure.input = "four"
/// measure.start()
/// assert(measure.output == 4)
/// ```
///
/// Its life cycle is that of ``AsyncOperation``, with two differences:
///
/// 1. Override ``main(input:)`` instead of `main()`, which is sealed. A missing input ends the operation with
///    ``IOOperationError/missingInput(operation:)`` instead of calling it. `Void` needs no input.
/// 2. Call ``finish(with:)`` for success. `finish(withError: nil)` would be a success without an output, and ends the
///    operation with ``IOOperationError/missingOutput(operation:)``; where the output is `Void` it is a success.
open class IOOperation<Input: Sendable, Output: Sendable>: AsyncOperation, OutputOperation, @unchecked Sendable {
    /// The work of those that run a closure in a task; set before the start.
    final var taskWork: TaskWork<Input, Output>?
    /// The input if none is set; set in the initializer.
    package final var defaultInput: Input?
    /// Whether it runs without an input, too, as what makes attempts does: these may have inputs of their own.
    final var isInputOptional = false
    private var storedInput: Input?
    private var storedOutput: Output?

    /// Creates an operation without an input.
    public override init() {
        super.init()
    }

    /// What the operation works on. Set it before the start, or in a binding. ``main(input:)`` gets what is there when it is called.
    public final var input: Input? {
        get { lock.withLock { storedInput } }
        set {
            var previous = newValue
            lock.withLock { swap(&previous, &storedInput) }
        }
    }

    /// Sets the input, in the expression that creates the operation or wherever one is expected.
    ///
    /// ```swift
    /// let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }.with(input: "four")
    /// let waterfall = Waterfall<String, String>()
    ///     .thenRun { text in IOBlockOperation<String, Int> { $0.count }.with(input: text) }
    /// ```
    ///
    /// - Parameter input: What the operation works on. See ``input``.
    /// - Returns: This operation.
    public final func with(input: Input) -> Self {
        self.input = input
        return self
    }

    /// What the operation produced: `nil` until it has finished with success. Can be read from any thread, from
    /// `asyncCompletionBlock` on.
    public final var output: Output? {
        withState {
            guard case .success = $0.lifecycle.outcome else { return nil }
            return storedOutput ?? () as? Output
        }
    }

    /// The output or the error, once the outcome stands; `nil` before. Can be read from any thread, from
    /// `asyncCompletionBlock` on.
    public final var result: Result<Output, any Error>? {
        error.map(Result.failure) ?? output.map(Result.success)
    }

    /// Suspends until the operation is finished, and returns its output or throws its error.
    ///
    /// Any number of tasks may wait, before, during or after the run. Cancelling a waiting task ends its wait with
    /// `CancellationError`, and leaves the operation alone. See ``AsyncOperation/finished()``.
    public final var value: Output {
        get async throws {
            try await finished()
            // It does not change any more.
            guard let output = storedOutput ?? () as? Output else {
                preconditionFailure("OperationKit: “\(displayName)” finished without an output")
            }
            return output
        }
    }

    /// Starts the work on an input. The default implementation finishes the operation without an output, which is an error
    /// unless that is `Void`.
    ///
    /// Called under the conditions of ``AsyncOperation/main()``.
    open func main(input: Input) {
        finishInDefaultMain()
    }

    /// Does nothing: ``main(input:)`` is called by `start()`.
    public final override func main() {}

    final override func startWork() {
        // Without looking up what type an optional input has.
        if Input.self == Void.self {
            startWork(on: void())
        } else if let input = requiredInput() {
            startWork(on: input)
        }
    }

    private var givenInput: Input? {
        // With the type given: otherwise `Input?` would be inferred, which has another size.
        Input.self == Void.self ? .some(void() as Input) : input ?? defaultInput
    }

    private var missingInput: any Error { IOOperationError.missingInput(operation: displayName) }

    override var startProblem: (any Error)? {
        super.startProblem ?? (givenInput == nil && !isInputOptional ? missingInput : nil)
    }

    /// The input. If there is none, ends the operation with an error.
    final func requiredInput() -> Input? {
        if let input = givenInput { return input }
        finish(withError: missingInput)
        // A composite may have started to wait for its children.
        if isComposite { perform(.drain) }
        return nil
    }

    /// Starts the task, or calls ``main(input:)``. Classes that seal it start their work here instead, where callers cannot
    /// reach it.
    func startWork(on input: Input) {
        if taskWork == nil { main(input: input) } else { startTask(with: input) }
    }

    override var waitDescription: String? { lock.withLock { taskWork?.wait } }

    override var passesRequestToChildren: Bool { taskWork?.isRetried == true }

    override func cancellationTookEffect() {
        lock.withLock { taskWork?.task }?.cancel()
    }

    /// Cancels a task that goes on because other code finished the operation.
    override func releaseWork() {
        guard let taskWork else { return }
        // The closure is released after unlocking; its deinitializers may run arbitrary code.
        let (_, task) = lock.withLock { (taskWork.body.take(), taskWork.task.take()) }
        task?.cancel()
    }

    /// Ends the operation with success and this output. The first call of this or `finish(withError:)` decides the
    /// outcome. See ``AsyncOperation/finish(withError:)``, which says from where, and what it means before the start and for composites.
    ///
    /// - Parameter output: The output.
    /// - Returns: Whether this call decided the outcome.
    @discardableResult
    public final func finish(with output: Output) -> Bool {
        finish(with: .success(())) { storedOutput = output }
    }

    /// Ends the operation with an error. With `nil` it is a success, which only an operation without an output can have.
    ///
    /// - Parameter error: The error, as that of ``AsyncOperation/finish(withError:)``.
    /// - Returns: Whether this call decided the outcome.
    @discardableResult
    public final override func finish(withError error: (any Error)?) -> Bool {
        super.finish(withError: error)
    }

    /// Ends the operation with an error, because its output is missing.
    @available(*, deprecated, message: "use finish(with:) or finish(withError:): a success needs an output")
    @discardableResult
    public final func finish() -> Bool {
        finish(withError: nil)
    }

    /// Ends the operation with the result of its work. `onAcceptance` is called with the lock held.
    final func settle(with result: Result<Output, any Error>, onAcceptance: () -> Void) {
        finish(with: result.map { _ in }) {
            storedOutput = try? result.get()
            onAcceptance()
        }
    }

    /// A composite's children have all finished. Its own result depends on whether it was cancelled, and why. It is asked for, with
    /// the lock held, unless a call of `finish` has given an outcome.
    final func childrenFinished(withResult result: OwnResult<Output>, _ list: inout Trampoline) {
        childrenFinished(&list) { isCancelled, reason in
            result(isCancelled, reason).map { storedOutput = $0 }
        }
    }

    /// The result of a composite's body is the one that counts. Called with the lock held.
    func bodyDecides() {}

    override func validated(_ outcome: Lifecycle.Outcome) -> Lifecycle.Outcome {
        guard case .success = outcome, Output.self != Void.self else { return outcome }
        return .failure(missingOutput)
    }
}

extension AsyncOperation {
    /// The error of a success without an output.
    var missingOutput: IOOperationError { .missingOutput(operation: displayName) }
}

extension IOOperation where Output == Void {
    /// Ends the operation with success. The first call of this or `finish(withError:)` decides the outcome.
    ///
    /// - Returns: Whether this call decided the outcome.
    @discardableResult
    public final func finish() -> Bool {
        finish(withError: nil)
    }
}

/// An operation with a typed output. Every ``IOOperation`` is one.
///
/// It lets the jobs of a ``Waterfall`` return operations of any subclass. A class of your own that conforms to it must have an output
/// whenever it succeeds, `Void` included.
public protocol OutputOperation<Output>: AsyncOperation, SendableMetatype {
    /// What the operation produces.
    associatedtype Output: Sendable

    /// What the operation produced, or `nil`.
    var output: Output? { get }
}

/// `()`, as a type that is known to be `Void`. A cast would look for that at run time.
private func void<Type>() -> Type {
    unsafe unsafeBitCast((), to: Type.self)
}

// A composite whose work is an `async` body, which runs operations as children: retries, repetitions, workflows and others.
// The body runs in one task, from `main()` on, and counts as an unfinished child. So the composite ends when the body and all
// children have.
extension IOOperation {
    /// Makes the operation a composite with a body, in its initializer.
    ///
    /// - Parameters:
    ///   - children: The scheduler of the children, which has a ``CompositeBody``.
    ///   - describer: Describes the children, if the scheduler does not.
    ///   - body: Called once with the input, and released when it returns. The operation is kept alive meanwhile, so the
    ///     body refers to it unowned. If it throws, the children are cancelled.
    func becomeComposite(
        of children: ChildScheduler, describer: (any ChildDescriber)? = nil,
        body: @escaping @Sendable (_ input: Input) async throws -> Output
    ) {
        becomeComposite(of: children, describer: describer, taking: { $0.requiredInput() }, body: body)
    }

    /// The same, for a body that takes something else than the input. `take` returns `nil` if the operation has ended instead.
    func becomeComposite<Given: Sendable>(
        of children: ChildScheduler, describer: (any ChildDescriber)?,
        taking take: @escaping @Sendable (IOOperation) -> Given?,
        body: @escaping @Sendable (_ given: Given) async throws -> Output
    ) {
        // The body until it is called, and then its result.
        let work = Locked<(body: (@Sendable (Given) async throws -> Output)?, result: Result<Output, any Error>?)>(
            (body, nil))
        children.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self, unowned children] in
                    guard let given = take(self) else { return }
                    runBody(in: children, start: children.run) {
                        let result = await Result {
                            guard let body = work.withLock({ $0.body.take() }) else { throw CancellationError() }
                            return try await body(given)
                        }
                        work.withLock { $0.result = result }
                        return result.error == nil
                    }
                },
                finished: { [unowned self, unowned children] failures, list in
                    let (_, result) = work.withLock { ($0.body.take(), $0.result.take()) }
                    bodyAndChildrenFinished(result, failures, in: children, &list)
                },
                describer: describer))
    }

    /// Starts a body.
    ///
    /// - Parameters:
    ///   - children: The scheduler of the children.
    ///   - start: Starts the children that are there already.
    ///   - body: The body. Returns whether it did not throw.
    func runBody(
        in children: ChildScheduler, start: () -> Void, _ body: @escaping @Sendable () async -> Bool
    ) {
        children.machine.withLock { $0.hasRunningBody = true }
        start()
        // A thread that belongs to no operation queue may be the main one. That of a dispatch queue, as of the main queue, may not block.
        if let queue = OperationQueue.current, unsafe queue.underlyingQueue == nil {
            children.body?.stay(asWorker: false)
        }
        children.body?.start(priority: qualityOfService.equivalents.priority) {
            let isSuccess = await body()
            if Task.isCancelled || children.cancelsNewChildren { self.cancel() }
            if !isSuccess { Trampoline.run { children.cancelAll(&$0) } }
            children.bodyEnded()
        }
        _ = children.body?.run()
    }

    private func bodyAndChildrenFinished(
        _ result: Result<Output, any Error>?, _ failures: ChildFailures, in children: ChildScheduler,
        _ list: inout Trampoline
    ) {
        let name = displayName
        let skippedError = children.body?.skippedError
        children.body?.skippedError = nil
        let result = (result ?? .failure(CancellationError())).mapError { error in
            (skippedError?.passingOnCause(in: error) ?? error).marked
        }
        childrenFinished(
            withResult: { isCancelled, reason in
                bodyDecides()
                guard case .success(let output) = result, !failures.errors.isEmpty else { return result }
                return failures.outcome(name: name, isCancelled: isCancelled, reason: reason).map { output }
            }, &list)
    }
}

extension Result where Success: Sendable, Failure == any Error {
    /// Stores what an asynchronous body returns or throws.
    init(_ body: @Sendable () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
