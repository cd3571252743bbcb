#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// What is known of one operation, which this does not keep alive.
final class PolicyUnit: Sendable {
    struct State {
        weak var operation: Operation?
        var (isInside, hasWorked) = (false, false)
        /// Its work must not begin any more.
        var isBarred = false
        /// Another thread ends it, so that its work may go on after its end.
        var isSteered = false
        /// The children that require its success.
        var dependents: [PolicyUnit] = []
        /// Its limit has been changed.
        var isLimitOpen = false
        /// It is no root or child any more, and may be freed while it executes, as all that is inside it.
        var isDropped = false
        var (ends, completions) = (0, 0)
        var error: (any Error)?
        /// The time right before its `main()`.
        var ready: Duration?
    }

    let node: PolicyNode
    let name: String
    /// The composite around it, or the operation whose condition needs it.
    let parent, needing: PolicyUnit?
    /// Whether it may begin before the composite around it.
    let startsAlone: Bool
    let state = Shared(State())
    /// The resources that it, or each of its attempts, requires.
    let required: Set<Int>

    init(_ node: PolicyNode, _ number: Int, in parent: PolicyUnit?, startsAlone: Bool, for needing: PolicyUnit?) {
        self.startsAlone = startsAlone
        (self.node, self.parent, self.needing, name) = (node, parent, needing, "p\(node.id).\(number)")
        let own = node.policies.compactMap { if case .resource(let index, _) = $0 { index } else { nil } }
        required = Set(own).union(parent?.node.kind.passesRequestToChildren == true ? parent?.required ?? [] : [])
    }

    var operation: Operation? { state.change(\.operation) }
    /// Whether it is at work, in the order that the composite around it keeps.
    var isWorking: Bool { !startsAlone && state.change { $0.isInside && $0.operation != nil } }
    var isLoose: Bool { needing != nil || state.value.isDropped || parent?.isLoose == true }
}

struct PolicyFailure: Error { let name: String }

// Makes the operations of a program.
extension PolicyRun {
    func make(
        _ node: PolicyNode, in parent: PolicyUnit? = nil, startsAlone: Bool = false, for needing: PolicyUnit? = nil
    ) -> Operation {
        let unit = units.change { units in
            let number = units.count { $0.node.id == node.id }
            units.append(PolicyUnit(node, number, in: parent, startsAlone: startsAlone, for: needing))
            return units[units.count - 1]
        }
        let operation = operation(for: unit)
        operation.name = unit.name
        operation.queuePriority = Operation.QueuePriority(rawValue: 4 * node.priority) ?? .normal
        operation.completionBlock = { unit.state.change { $0.completions += 1 } }
        tracker.track(operation, unit.name)
        unit.state.change { ($0.operation, $0.isBarred) = (operation, node.isCancelledBefore) }
        if let operation = operation as? AsyncOperation {
            for policy in node.policies { apply(policy, to: operation, unit) }
            operation.clock = clock
            operation.addStartHandler(.last) { [self] _ in unit.state.change { $0.ready = time } }
            operation.asyncCompletionBlock = { [weak operation, self] in ended(unit, operation, $0) }
        }
        if node.isCancelledBefore { operation.cancel() }
        return operation
    }

    private func apply(_ policy: Policy, to operation: AsyncOperation, _ unit: PolicyUnit) {
        switch policy {
        case .timeout(let time): operation.timeout = .microseconds(time)
        case .circuit: if let circuit = circuit.value { operation.require(circuit) }
        case .resource(let index, let time):
            operation.require(resources.value[index], within: time.map { .microseconds($0) })
        case .condition(let verdict, let needed):
            operation.addCondition(PolicyCondition(run: self, unit: unit, verdict: verdict, needed: needed))
        }
    }

    private func operation(for unit: PolicyUnit) -> Operation {
        let node = unit.node
        let part = { @Sendable [self] (node: PolicyNode) -> IOOperation<Void, Void> in
            make(node, in: unit) as? IOOperation<Void, Void> ?? IOBlockOperation { _ in }
        }
        var policy = RetryPolicy(maximumAttempts: node.limit, backoff: .exponential(.microseconds(node.delay)))
        policy.attemptTimeout = node.attemptTimeout.map { .microseconds($0) }
        switch node.kind {
        case .inline, .hopping, .endless: return PolicyLeaf(unit, self)
        case .task: return TaskOperation<Void> { [self] in try work(unit) }
        case .endlessTask:
            return TaskOperation<Void> { [self] in
                try work(unit)
                await gate.opened()
                try Task.checkCancellation()
            }
        case .retriedTask:
            return TaskOperation<Void>(retry: policy) { [self] in
                defer { leave(unit) }
                try work(unit)
                await Task.yield()
            }
        case .losing:
            return IOBlockOperation<Void, Void>.finishing { [self] _, finish in
                do { try work(unit) } catch { finish(error) }
            }
        // Its work may begin after it was finished in `cancel()`.
        case .foreign: return ForeignOperation(endsInCancel: true) { $0.finish() }
        case .compound:
            let children = node.children.map { make($0, in: unit) }
            for (index, child) in node.children.enumerated().dropFirst() where child.dependsOnSibling {
                children[index].addDependency(children[index - 1])
                if child.requiresSuccess { requireSuccess(of: children[index - 1], by: children[index]) }
            }
            return CompoundOperation(
                operations: children, maxConcurrentOperationCount: node.limit,
                failurePolicy: node.cancelsRemaining ? .cancelRemaining : .continueAll)
        case .gathering:
            return node.children.map(part).gathered(
                maxConcurrentOperationCount: node.limit,
                failurePolicy: node.cancelsRemaining ? .cancelRemaining : .continueAll)
        case .recovery:
            return part(node.children[0]).recoverRun { _ in part(node.children[node.children.count - 1]) }
        case .macro:
            return node.children.dropFirst().reduce(MacroOperation(part(node.children[0]))) { $0.then(part($1)) }
        case .waterfall:
            return node.children.reduce(Waterfall<Void, Void>()) { waterfall, child in waterfall.thenRun { part(child) }
            }
        case .workflow:
            return WorkflowOperation<Void, Void> { for child in node.children { try await $0.run(part(child)) } }
        case .retry: return RetryOperation(policy) { [self] in attempt($0, of: unit) }
        case .hedge:
            return HedgedOperation(after: .microseconds(node.delay), maximumAttempts: node.limit) { [self] in
                attempt($0, of: unit)
            }
        case .repetition:
            return RepeatOperation(
                every: .microseconds(node.delay), maximumCount: node.limit, until: { [gate] in gate.isOpen }
            ) { [self] in attempt($0, of: unit) }
        }
    }

    private func requireSuccess(of source: Operation, by operation: Operation) {
        guard let operation = operation as? AsyncOperation, let source = known(source),
            let dependent = known(operation),
            source.node.kind != .foreign
        else { return }
        source.operation.map(operation.requireSuccess)
        source.state.change { $0.dependents.append(dependent) }
    }

    private func attempt(_ number: Int, of unit: PolicyUnit) -> AsyncOperation {
        let earlier = units.value.filter { $0.parent === unit }
        let isEarly = unit.node.kind != .hedge && earlier.contains { $0.state.value.ends == 0 }
        if isEarly || number != earlier.count + 1 || number > unit.node.limit {
            problems.add("\(unit.name) makes attempt \(number) after \(earlier.map(\.name))")
        }
        return make(unit.node.children[0], in: unit) as? AsyncOperation ?? AsyncOperation()
    }

    fileprivate func work(_ unit: PolicyUnit) throws {
        enter(unit)
        let fails = unit.node.failure == 2 || unit.node.failure == 1 && unit.name.hasSuffix("0")
        if fails { throw PolicyFailure(name: unit.name) }
    }
}

/// A leaf that does its work in `main()`, and ends there, on another thread, or only when the gate is opened.
private final class PolicyLeaf: IOOperation<Void, Void>, @unchecked Sendable {
    private let unit: PolicyUnit
    private let run: PolicyRun

    init(_ unit: PolicyUnit, _ run: PolicyRun) {
        (self.unit, self.run) = (unit, run)
    }

    override func main(input: Void) {
        do { try run.work(unit) } catch { return _ = finish(withError: error) }
        switch unit.node.kind {
        case .hopping: DispatchQueue.global().async { self.finish(with: ()) }
        case .endless:
            Task { [weak self, gate = run.gate] in
                await gate.opened()
                self?.finish(with: ())
            }
        default: finish(with: ())
        }
    }

    override func didCancel() {
        if unit.node.kind == .endless { finish(withError: CancellationError()) }
    }
}

/// A condition that says what the program wants.
private struct PolicyCondition: OperationCondition {
    let run: PolicyRun
    let unit: PolicyUnit
    let verdict: Policy.Verdict
    let needed: [PolicyNode]

    func prerequisite(for operation: AsyncOperation) -> Operation? {
        needed.first.map { run.make($0, for: unit) }
    }

    func evaluate(for operation: AsyncOperation) async throws -> ConditionResult {
        if verdict != .satisfied { unit.state.change { $0.isBarred = true } }
        switch verdict {
        case .satisfied: return .satisfied
        case .failed: return .failed(PolicyFailure(name: unit.name))
        case .skipped: return .skipped
        case .throwing: throw PolicyFailure(name: unit.name)
        case .cancelling: operation.cancel()
        case .finishing: operation.finish(withError: PolicyFailure(name: unit.name))
        }
        return .satisfied
    }
}
#endif
