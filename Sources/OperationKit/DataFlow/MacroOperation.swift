import Foundation

/// A chain of typed operations that is one operation: each step gets what the step before it produced.
///
/// ```swift
/// let choose = IOBlockOperation<String, Data>(name: "choose") { Data($0.utf8) }
/// let upload = IOBlockOperation<Data, Int>(name: "upload") { $0.count }
///
/// let publish = MacroOperation(choose).then(upload, progressWeight: 4)
/// publish.input = "photo"
/// let size = try await OperationQueue().run(publish)
/// assert(size == 5)
/// ```
///
/// The types decide what can follow what. A step starts when the one before it has finished and its output has been
/// handed over. The output of the last step is that of the macro.
///
/// ## Building
///
/// `then` appends a step and returns a new, longer macro. Don't use its receiver afterward: the steps have moved to the new
/// macro, with the name, the input, a cancellation and an error, and starting the old one fails with
/// ``ChainError/consumed(chain:)``. Set dependencies, blocks and the like on the last macro. Steps may be macros and waterfalls themselves. A step belongs to one chain, once:
/// otherwise the macro ends with ``ChainError/alreadyUsed(operation:chain:)`` when it is started, and no step runs.
/// Complexity: each `then` costs O(1) plus its dependencies.
///
/// Steps may have dependencies and bindings of their own, also to steps before them; a step starts after these, too.
///
/// ## Failure and cancellation
///
/// | What happens | How the macro ends |
/// |---|---|
/// | a step fails | with that step's own error |
/// | a step is cancelled by itself | with `CancellationError`, or the reason |
/// | the macro is cancelled | with `CancellationError`, or the reason |
/// | the macro is cancelled, and a running step fails with another error | with that error |
/// | the macro is cancelled, and its last step succeeds | with the output |
/// | `finish(withError:)` or `finish(with:)` is called on the macro | with that outcome |
///
/// In each case the steps that run are cancelled, the later ones finish without running, and the macro finishes after all of
/// them. ``failedStep`` says which step failed or was cancelled by itself.
///
/// ## Threads
///
/// The steps start on threads of a private queue, whose quality of service is that of the macro when it starts. The
/// completion block is called on the thread on which the last step ended, or on the one that was still in its `start()` then.
/// Steps are released as they finish.
public final class MacroOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    /// The last step. Gone when the macro has been consumed, or has ended. Freed before the steps, which take long chains apart.
    private var source: (any OutputOperation<Output>)?
    private let steps: MacroSteps
    private weak var first: (any InputReceiver<Input>)?
    private var failure: SuboperationError?

    /// Creates a macro of one step.
    ///
    /// - Parameters:
    ///   - first: The first step. It gets the input of the macro. An input that it has already becomes that of the macro;
    ///     a binding of its input that was made before does not count if the macro has none: bind the macro.
    ///   - name: The name of the operation, and of the macro that continues it.
    ///   - progressWeight: The step's share in the progress, in proportion to those of the others.
    public convenience init(_ first: IOOperation<Input, Output>, name: String? = nil, progressWeight: Int64 = 1) {
        self.init(steps: MacroSteps(), first: first, source: first)
        self.name = name
        append(first, weight: progressWeight)
        takeInput(of: first)
    }

    private init(steps: MacroSteps, first: (any InputReceiver<Input>)?, source: any OutputOperation<Output>) {
        self.steps = steps
        self.first = first
        self.source = source
        super.init()
        steps.children.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self] in startSteps() },
                finished: { [unowned self] failures, list in stepsFinished(failures: failures, &list) },
                describer: steps))
    }

    /// The step that failed or was cancelled, and so ended the chain: its name, or its type and a number, its index among the steps, and
    /// its error. May be read on any thread. `nil` before the end, on success, and when another outcome stands because the macro itself was
    /// cancelled or finished.
    public var failedStep: SuboperationError? {
        lock.withLock { failure }
    }

    /// Does nothing: the steps are run by `start()`.
    public override func main(input: Input) {}

    private func startSteps() {
        run(steps, from: lock.withLock { first })
    }

    private func stepsFinished(failures: ChildFailures, _ list: inout Trampoline) {
        let failure = failures.errors.first.map(steps.renumbered)
        // Release it after unlocking; what it holds may run arbitrary code when it is freed.
        let source = lock.withLock { self.source.take() }
        let output = failure == nil ? source?.output : nil
        let error = (failure?.outcomeError ?? CancellationError()).marked
        childrenFinished(
            withResult: { _, _ in
                self.failure = failure
                return output.map(Result.success) ?? .failure(error)
            }, &list)
    }
}

// MARK: - Building

extension MacroOperation {
    /// Returns a new macro with one more step, which gets the output of the last one.
    ///
    /// - Parameters:
    ///   - next: The step. Not part of any other operation, and not started by other code.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other steps.
    /// - Returns: A new macro. This one is consumed.
    public func then<Next>(
        _ next: IOOperation<Output, Next>, progressWeight: Int64 = 1
    ) -> MacroOperation<Input, Next> {
        extended(to: next) { macro, source in
            macro.append(next, after: source, weight: progressWeight)
        }
    }

    /// Returns a new macro with one more step, which runs after the last one but gets the output of an earlier one.
    ///
    /// ```swift
    /// let download = IOBlockOperation<URL, Data>(name: "download") { _ in Data() }
    /// let process = IOBlockOperation<Data, Int>(name: "process") { $0.count }
    /// let cleanUp = IOBlockOperation<Data, Void>(name: "clean up") { _ in }
    /// let macro = MacroOperation(download).then(process).then(cleanUp, inputFrom: download)
    /// ```
    ///
    /// - Parameters:
    ///   - next: The step. Not part of any other operation, and not started by other code.
    ///   - earlier: The step whose output it gets. If it is no earlier step of this macro, the new macro ends with
    ///     ``ChainError/notAStep(operation:chain:)``.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other steps.
    /// - Returns: A new macro. This one is consumed.
    public func then<EarlierInput, Earlier, Next>(
        _ next: IOOperation<Earlier, Next>, inputFrom earlier: IOOperation<EarlierInput, Earlier>,
        progressWeight: Int64 = 1
    ) -> MacroOperation<Input, Next> {
        extended(to: next) { macro, source in
            guard macro.requireSteps([earlier]) else { return }
            macro.append(next, after: [source, earlier], weight: progressWeight) { [weak earlier] in earlier?.output }
        }
    }

    /// Returns a new macro with one more step, which runs after the last one and gets the outputs of two earlier ones.
    ///
    /// - Parameters:
    ///   - next: The step. Not part of any other operation, and not started by other code.
    ///   - first: The step whose output is the first part of its input.
    ///   - second: The step whose output is the second part of its input. If one of them is no earlier step of this
    ///     macro, the new macro ends with ``ChainError/notAStep(operation:chain:)``.
    ///   - progressWeight: Its share in the progress, in proportion to those of the other steps.
    /// - Returns: A new macro. This one is consumed.
    public func then<FirstInput, First, SecondInput, Second, Next>(
        _ next: IOOperation<(First, Second), Next>, inputFrom first: IOOperation<FirstInput, First>,
        _ second: IOOperation<SecondInput, Second>, progressWeight: Int64 = 1
    ) -> MacroOperation<Input, Next> {
        extended(to: next) { macro, source in
            guard macro.requireSteps([first, second]) else { return }
            macro.append(next, after: [source, first, second], weight: progressWeight) { [weak first, weak second] in
                joined(first?.output, second?.output)
            }
        }
    }

    /// Returns a new macro with two more steps, which run at the same time. Both get the output of the last step; their outputs
    /// together are the input of the next one.
    ///
    /// ```swift
    /// let load = IOBlockOperation<String, [Int]>(name: "load") { $0.utf8.map(Int.init) }
    /// let smallest = IOBlockOperation<[Int], Int>(name: "smallest") { $0.min() ?? 0 }
    /// let largest = IOBlockOperation<[Int], Int>(name: "largest") { $0.max() ?? 0 }
    /// let range = IOBlockOperation<(Int, Int), Int>(name: "range") { $0.1 - $0.0 }
    /// let macro = MacroOperation(load).then(concurrently: smallest, largest).then(range)
    /// ```
    ///
    /// - Parameters:
    ///   - first: The step whose output comes first. Not part of any other operation, and not started by other code.
    ///   - second: The step whose output comes second.
    ///   - progressWeight: The share of each in the progress, in proportion to those of the other steps.
    /// - Returns: A new macro. This one is consumed.
    public func then<First, Second>(
        concurrently first: IOOperation<Output, First>, _ second: IOOperation<Output, Second>,
        progressWeight: Int64 = 1
    ) -> MacroOperation<Input, (First, Second)> {
        let join = IOBlockOperation<(First, Second), (First, Second)>(name: "join") { $0 }
        return extended(to: join) { macro, source in
            macro.append(first, after: source, weight: progressWeight)
            macro.append(second, after: source, weight: progressWeight)
            macro.append(join, after: [first, second], weight: nil) { [weak first, weak second] in
                joined(first?.output, second?.output)
            }
        }
    }

    /// Returns a new macro with any number of steps more, which run at the same time. Each gets the output of the last
    /// step; their outputs, in the order of the steps, are the input of the next one.
    ///
    /// Complexity: Foundation searches the dependencies of the step that waits for them at each addition, so n steps cost O(n²) pointer
    /// comparisons. For a hundred thousand, use one step that maps its input: a ``MapOperation``, for example.
    ///
    /// - Parameters:
    ///   - next: The steps. Not part of any other operation, and not started by other code.
    ///   - progressWeight: The share of each in the progress, in proportion to those of the other steps.
    /// - Returns: A new macro. This one is consumed.
    public func then<Next>(
        concurrently next: [IOOperation<Output, Next>], progressWeight: Int64 = 1
    ) -> MacroOperation<Input, [Next]> {
        let join = IOBlockOperation<[Next], [Next]>(name: "join") { $0 }
        return extended(to: join) { macro, source in
            for step in next { macro.append(step, after: source, weight: progressWeight) }
            let steps = next.map(WeakReference.init)
            macro.append(join, after: next.isEmpty ? [source] : next, weight: nil) {
                // If an output is missing, its step has failed, and the work of this one is not started.
                steps.compactMap { $0.object?.output }
            }
        }
    }

    /// Returns a new macro with the steps of this one, and what `append` adds to them.
    private func extended<Next>(
        to newSource: any OutputOperation<Next>,
        append: (MacroOperation<Input, Next>, any OutputOperation<Output>) -> Void
    ) -> MacroOperation<Input, Next> {
        var taken: (any OutputOperation<Output>)?
        let refusal = consume {
            taken = source.take()
            steps.children.detach()
        }
        let macro = MacroOperation<Input, Next>(
            steps: refusal == nil ? steps : MacroSteps(), first: refusal == nil ? first : nil, source: newSource)
        pass(to: macro)
        if let taken { append(macro, taken) }
        if let refusal { macro.steps.children.refuse { _ in refusal } }
        return macro
    }

    private func append<StepInput, StepOutput>(
        _ step: IOOperation<StepInput, StepOutput>, after source: any OutputOperation<StepInput>,
        weight: Int64
    ) {
        append(step, after: [source], weight: weight) { [weak source] in source?.output }
    }

    /// Appends a step. If it is part of another operation, the macro ends with ``ChainError/alreadyUsed(operation:chain:)``.
    ///
    /// - Parameters:
    ///   - step: The step.
    ///   - sources: The steps that it runs after.
    ///   - weight: Its share in the progress; `nil` for a step that the user does not know of.
    ///   - input: Returns its input, if that is not the one of the macro.
    private func append<StepInput, StepOutput>(
        _ step: IOOperation<StepInput, StepOutput>, after sources: [AsyncOperation] = [], weight: Int64?,
        input: (@Sendable () -> StepInput?)? = nil
    ) {
        if step.isConsumed { return steps.refuse(alreadyUsed: step) }
        if steps.append(step, weight: weight), let input { step.takeInput(after: sources, input: input) }
    }

    private func requireSteps(_ operations: [AsyncOperation]) -> Bool {
        for operation in operations where !operation.isPart(of: steps.children) {
            let name = operation.displayName
            steps.children.refuse { ChainError.notAStep(operation: name, chain: $0) }
            return false
        }
        return true
    }
}

private func joined<First, Second>(_ first: First?, _ second: Second?) -> (First, Second)? {
    // If an output is missing, its step has failed, and the work of the step that takes both is not started.
    guard let first, let second else { return nil }
    return (first, second)
}
