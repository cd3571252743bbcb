import Foundation

/// The steps of a macro, and how users count them: without the steps that the library adds itself, such as the join
/// after `then(concurrently:)`.
///
/// The steps are the children of one scheduler, which moves from macro to macro as the chain grows. So nothing is
/// copied, and whether a step belongs to the chain is known in O(1), whatever the length of the chain.
final class MacroSteps: ChildDescriber {
    let children: ChildScheduler

    private struct State {
        /// For each step its index as users count, negative for a step that the library has added.
        var places: [Int] = []
        var count = 0
    }

    private let state = Locked(State())

    /// Creates an empty list.
    ///
    /// - Parameters:
    ///   - failurePolicy: What the first step that fails or is cancelled means for the others.
    ///   - body: The body of the composite, if it has one.
    init(failurePolicy: FailurePolicy = .cancelRemaining, body: CompositeBody? = nil) {
        children = ChildScheduler(
            failurePolicy: failurePolicy, countsCancellations: true, noun: "steps", body: body)
    }

    /// Appends a step. If it is part of another operation, the steps are not to run.
    ///
    /// - Parameters:
    ///   - operation: The step.
    ///   - weight: Its share in the progress; `nil` for a step that the user does not know of.
    /// - Returns: Whether the step was appended.
    func append(_ operation: AsyncOperation, weight: Int64?) -> Bool {
        guard operation.setParent(children, from: nil) else {
            refuse(alreadyUsed: operation)
            return false
        }
        state.withLock { state in
            state.places.append(weight == nil ? -1 : state.count)
            if weight != nil { state.count += 1 }
        }
        children.update { $0.addedInitially(CollectionOfOne(operation), weight: weight ?? 0) }
        if weight == nil { operation.hideFromObservers() }
        if let composite = children.operation { operation.announceAddition(to: composite) }
        return true
    }

    /// The steps are not to run, because one of them is part of another operation.
    func refuse(alreadyUsed operation: AsyncOperation) {
        let name = operation.displayName
        children.refuse { ChainError.alreadyUsed(operation: name, chain: $0) }
    }

    /// Before the start, describes the steps only by their number.
    func describe(_ snapshot: inout ChildSnapshot) {
        if children.body != nil { return snapshot.summary = [] }
        guard snapshot.readyText == nil else { return }
        let count = state.withLock(\.count)
        snapshot.summary = ["\(count) step\(count == 1 ? "" : "s")"]
    }

    /// The failure as the user counts steps.
    func renumbered(_ failure: SuboperationError) -> SuboperationError {
        var failure = failure
        state.withLock { state in
            failure.index = state.places[failure.index]
            failure.siblingCount = state.count
        }
        return failure
    }
}

/// An operation that is known by the type of its input only.
protocol InputReceiver<Input>: AsyncOperation {
    associatedtype Input: Sendable

    var input: Input? { get set }
}

extension IOOperation: InputReceiver {
    /// Gives the steps or jobs to a longer chain, which takes them over as they are. This operation ends with an error when
    /// it is started.
    ///
    /// - Parameter take: Called with the lock held, if they can be given away. Takes the children away from this operation.
    /// - Returns: Why they cannot.
    func consume(_ take: () -> Void) -> ChainError? {
        let name = displayName
        let consumed = ChainError.consumed(chain: name)
        // Released after unlocking, as this may be the last reference.
        var parent: (any ChildGroup)?
        let refusal = withState { state -> ChainError? in
            parent = state.parent
            if parent != nil { return .alreadyUsed(operation: name, chain: name) }
            if isConsumed { return consumed }
            // A success would be lost.
            guard state.lifecycle.isPending, state.lifecycle.acceptsOutcome || state.lifecycle.earlyError != nil else {
                return .alreadyStarted(chain: name)
            }
            take()
            _ = state.lifecycle.finished(with: .failure(consumed))
            return nil
        }
        withExtendedLifetime(parent) {}
        return refusal
    }

    /// Takes the input of an operation that becomes part of this one, or what that runs on without one.
    func takeInput(of other: IOOperation<Input, some Sendable>) {
        (input, defaultInput, isInputOptional) = (other.input, other.defaultInput, other.isInputOptional)
    }

    /// Gives a longer chain the name, the input, and a cancellation or an error of this one that has come before.
    func pass(to chain: IOOperation<Input, some Sendable>) {
        chain.name = name
        chain.takeInput(of: self)
        if let error = withState({ $0.lifecycle.earlyError }), error as? ChainError != .consumed(chain: displayName) {
            chain.finish(withError: error)
        }
        if isCancelled { chain.cancel(reason: cancellationReason) }
        if withState({ $0.gates?.hasStartedParts == true }) {
            chain.withState { $0.requiredGates().hasStartedParts = true }
        }
    }

    /// Hands the input to the first step, and runs the steps. Ends the operation with an error if there is none, and the step
    /// needs one.
    func run(_ steps: MacroSteps, from first: (any InputReceiver<Input>)?) {
        if input != nil || !isInputOptional {
            guard let input = requiredInput() else { return }
            first?.input = input
        }
        steps.children.run()
    }

    /// Makes the operation run after others, and take its input from steps before.
    ///
    /// The dependencies are removed right before `main()`, after all bindings have been served: otherwise the last step of a
    /// chain would hold all steps before it. Those of a hidden step are there until the steps after it begin.
    func takeInput(after sources: [AsyncOperation], input: @escaping @Sendable () -> Input?) {
        let references = sources.map { source in
            addDependency(source)
            return WeakReference(source)
        }
        addStartHandler { [weak self] _ in
            let sources = references.compactMap(\.object)
            let value = input()
            for source in sources { if let error = source.error { throw error } }
            guard let value else { throw CancellationError() }
            self?.input = value
        }
        if withState(\.isHidden) { return }
        addStartHandler(.last) { target in
            for source in references.compactMap(\.object) { target.removeDependency(source) }
        }
    }
}
