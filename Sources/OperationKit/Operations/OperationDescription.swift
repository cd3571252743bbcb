import Foundation

/// How far an operation of any class has come, as a value.
enum OperationStatus: Equatable {
    case notStarted
    /// Between its start and its `main()`.
    case starting
    /// Between its start and its `main()`, with a gate that takes time, and the elapsed time, if recorded.
    case preparing(String, Duration?)
    /// The elapsed time, if recorded.
    case executing(Duration?)
    /// A composite that has been told to end, and whose children have not.
    case draining(Duration?)
    /// The outcome stands and is being delivered.
    case finishing
    case finished

    var text: String {
        switch self {
        case .notStarted: "not started"
        case .starting: "starting"
        case .preparing(let description, let age): description + (age.map { ", for \(ageText($0))" } ?? "")
        case .executing(let age): "executing" + (age.map { " for \(ageText($0))" } ?? "")
        case .draining(let age):
            "told to end, waiting for its children" + (age.map { ", executing for \(ageText($0))" } ?? "")
        case .finishing: "delivering its outcome"
        case .finished: "finished"
        }
    }
}

extension Operation {
    /// Asks the operation. What it answers may be overridden, so nothing may be locked.
    func status(at now: ContinuousClock.Instant) -> OperationStatus {
        if let operation = self as? AsyncOperation {
            let (status, gate, helper) = operation.withState { state in
                (state.status(at: now), state.lifecycle.isWaiting ? state.gates?.awaited : nil, state.gates?.helper)
            }
            guard case .executing(let age) = status else { return status }
            if let wait = operation.waitDescription { return .preparing(wait, age) }
            if let gate { return gate.waitDescription.map { .preparing($0, age) } ?? status }
            // What the operation waits for in the meantime, such as a resource for an attempt.
            guard case .preparing(let wait, _)? = helper?.status(at: now) else { return status }
            return .preparing(wait, age)
        }
        if isFinished { return .finished }
        return isExecuting ? .executing(nil) : .notStarted
    }
}

extension AsyncOperation.State {
    fileprivate func status(at now: ContinuousClock.Instant) -> OperationStatus {
        let age = execution?.startTime.age(at: now)
        return switch lifecycle.state {
        case .pending: .notStarted
        case .starting: .starting
        case .executing: .executing(age)
        case .draining: .draining(age)
        case .finishing: .finishing
        case .finished: .finished
        }
    }
}

/// A reason for a cancellation that descriptions of a cancelled operation mention.
protocol DescribedReason: Error {
    var remark: String { get }
}

extension Operation {
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
        if isCancelled, status != .finished {
            parts.insert("cancelled", at: 0)
            let reason = (self as? AsyncOperation)?.withState { $0.lifecycle.cancellationReason }
            if let reason = reason as? any DescribedReason { parts.append(reason.remark) }
        }
        return "“\(name ?? displayName)”: " + (parts + remarks).joined(separator: ", ")
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

    private let now: ContinuousClock.Instant
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
            parts.append("which waits for “\(chain.nearest[1])”")
            parts.append("which waits over \(chain.length - 3) more for “\(chain.last)”")
        } else {
            parts += chain.nearest.dropFirst().map { "which waits for “\($0)”" }
        }
        return (parts + [chain.end]).joined(separator: ", ")
    }

    private mutating func chain(from first: Operation, awaitedBy operation: Operation) -> Chain {
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(operation)]
        var way: [Operation] = []
        var next = first
        var isCycle = false
        var chain: Chain?
        while chain == nil {
            if let known = chains[ObjectIdentifier(next)] {
                chain = known
            } else if !seen.insert(ObjectIdentifier(next)).inserted {
                chain = Chain(next, end: "in a cycle")
                isCycle = true
            } else {
                let status = next.status(at: now)
                let dependency = status == .notStarted ? next.dependencies.first { !$0.isFinished } : nil
                if let dependency, way.count + 1 < WaitDescriptions.reach {
                    way.append(next)
                    next = dependency
                } else {
                    let isOpen = dependency != nil
                    chain = Chain(
                        next,
                        end: isOpen
                            ? "which waits for others"
                            : status == .notStarted ? "which has not been started" : status.text)
                    chains[ObjectIdentifier(next)] = chain
                    held.append(next)
                }
            }
        }
        guard var chain else { preconditionFailure("OperationKit: a chain of dependencies has no end") }
        for operation in way.reversed() {
            chain = chain.preceded(by: operation)
            if isCycle { continue }
            chains[ObjectIdentifier(operation)] = chain
            held.append(operation)
        }
        return chain
    }
}
