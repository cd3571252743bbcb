import Foundation

/// How far an operation of any class has come, as a value.
enum OperationStatus: Equatable {
    case notStarted
    /// Between its start and its `main()`.
    case starting
    /// Waiting for something, and the time elapsed since the start, if recorded.
    case waiting(String, Duration?)
    /// The elapsed time, if recorded.
    case executing(Duration?)
    /// Told to end, and its work or its children, as the text says, have not.
    case draining(String, Duration?)
    /// The outcome stands and is being delivered.
    case finishing
    case finished

    var text: String {
        switch self {
        case .notStarted: "not started"
        case .starting: "starting"
        // The time stands first, so that it is not that of an operation which the rest is about.
        case .waiting(let description, let age): Self.prefix(age) + description
        case .executing(let age): age.map { "executing for \($0.shortText)" } ?? "executing"
        case .draining(let rest, let age): Self.prefix(age) + "told to end, waiting for its \(rest)"
        case .finishing: "delivering its outcome"
        case .finished: "finished"
        }
    }

    private static func prefix(_ age: Duration?) -> String { age.map { "executing for \($0.shortText), " } ?? "" }
}

extension Operation {
    /// Asks the operation. What it answers may be overridden, so nothing may be locked.
    ///
    /// - Parameter now: The time up to which elapsed times are measured; without it there are none.
    /// - Returns: How far the operation has come.
    func status(at now: ContinuousClock.Instant?) -> OperationStatus {
        if let operation = self as? AsyncOperation {
            let (status, gate, helper) = operation.withState { state in
                (state.status(of: operation, at: now), state.awaitedGate, state.gates?.helper)
            }
            guard case .executing(let age) = status else { return status }
            if let gate { return gate.waitDescription(namesHolders: true).map { .waiting($0, age) } ?? status }
            if let wait = operation.waitDescription { return .waiting(wait, age) }
            // What the operation waits for in the meantime, such as a resource for an attempt.
            guard case .waiting(let wait, _)? = helper?.status(at: now) else { return status }
            return .waiting(wait, age)
        }
        if isFinished { return .finished }
        return isExecuting ? .executing(nil) : .notStarted
    }

    /// Describes the operation in one line. It is asked, so nothing may be locked.
    ///
    /// - Parameters:
    ///   - name: Another name than the one that the operation is usually shown with.
    ///   - remarks: What else is known of the operation.
    ///   - now: The time up to which elapsed times are measured.
    ///   - reason: Says why an operation that has not started has not.
    /// - Returns: The line.
    func summary(
        name: String? = nil, remarks: [String] = [], at now: ContinuousClock.Instant, reason: () -> String?
    ) -> String {
        let status = status(at: now)
        var parts = [status == .notStarted ? reason() ?? status.text : status.text]
        if status == .finished, let error = endingError {
            parts[0] += error.isCancellation ? " as cancelled" : " with an error"
        } else if isCancelled, status != .finished {
            parts.insert("cancelled", at: 0)
            let reason = (self as? AsyncOperation)?.cancellationReason as? any ReportedError
            if let remark = reason?.remark { parts.append(remark) }
        }
        // What stands behind the name of another operation would be taken for a remark on that.
        parts = parts.contains { $0.contains("“") } ? remarks + parts : parts + remarks
        return "“\(name ?? displayName)”: " + parts.joined(separator: ", ")
    }
}

extension AsyncOperation.State {
    fileprivate func status(of operation: AsyncOperation, at now: ContinuousClock.Instant?) -> OperationStatus {
        let age = now.flatMap { execution?.startTime.age(at: $0) }
        return switch lifecycle.state {
        case .pending: .notStarted
        case .starting: .starting
        case .executing: .executing(age)
        case .draining: .draining(operation.isComposite ? "children" : "work", age)
        case .finishing: .finishing
        case .finished: .finished
        }
    }
}

/// Says what operations wait for, what that waits for in turn, and so on, up to the one that all of them really wait for.
///
/// Complexity: linear in the dependencies of the operations on the way, each of which is followed once for all descriptions.
struct WaitDescriptions {
    /// The maximum number of dependencies to follow for one description.
    static let reach = 1_000

    /// An operation, what it waits for, and so on.
    private struct Chain {
        /// The names of the first four.
        var nearest: [String]
        let last: String
        var length = 1
        /// What there is to say of the last one.
        let end: String

        init(_ operation: Operation, end: String) {
            last = operation.displayName
            nearest = [last]
            self.end = end
        }

        func preceded(by operation: Operation) -> Chain {
            var chain = self
            chain.nearest = [operation.displayName] + nearest.prefix(3)
            chain.length += 1
            return chain
        }
    }

    let now: ContinuousClock.Instant
    private var chains: [ObjectIdentifier: Chain] = [:]
    /// An object is known by its identity only as long as it lives.
    private var held: [Operation] = []

    init(at now: ContinuousClock.Instant) {
        self.now = now
    }

    /// Asks the operations, so nothing may be locked. `nil` if all that the operation depends on has finished.
    mutating func text(for operation: Operation) -> String? {
        let unfinished = operation.unfinishedDependencies
        guard let first = unfinished.first else { return nil }
        let chain = chain(from: first, awaitedBy: operation)
        let others = unfinished.count > 1 ? " and \(unfinished.count - 1) more" : ""
        var parts = ["waiting for “\(chain.nearest[0])”" + others]
        if chain.length > 4 {
            // The nearest, and what it is all about.
            parts += [
                "which waits for “\(chain.nearest[1])”",
                "which waits over \(chain.length - 3) more for “\(chain.last)”",
            ]
        } else {
            parts += chain.nearest.dropFirst().map { "which waits for “\($0)”" }
        }
        return (parts + [chain.end]).joined(separator: ", ")
    }

    private mutating func chain(from first: Operation, awaitedBy operation: Operation) -> Chain {
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(operation)]
        var way: [Operation] = []
        var next = first
        while true {
            if let known = chains[ObjectIdentifier(next)] { return remember(known, after: way) }
            guard seen.insert(ObjectIdentifier(next)).inserted else {
                return way.reversed().reduce(Chain(next, end: "in a cycle")) { $0.preceded(by: $1) }
            }
            let status = next.status(at: now)
            let dependency = status == .notStarted ? next.dependencies.first { !$0.isFinished } : nil
            guard let dependency else {
                let end = status == .notStarted ? "which has not been started" : "which is \(status.text)"
                return remember(Chain(next, end: end), after: way)
            }
            guard way.count + 1 < WaitDescriptions.reach else {
                return remember(Chain(next, end: "which waits for others"), after: way)
            }
            way.append(next)
            next = dependency
        }
    }

    /// Remembers the chains of some operations, each of which waits for the next one, and the last one as `chain` does.
    private mutating func remember(_ chain: Chain, after way: [Operation]) -> Chain {
        way.reversed().reduce(chain) { chain, operation in
            let longer = chain.preceded(by: operation)
            chains[ObjectIdentifier(operation)] = longer
            held.append(operation)
            return longer
        }
    }
}
