import Foundation

/// What an operation waits for, what that waits for in turn, and so on, up to the one that all of them really wait for.
struct DependencyChainDescription: Equatable {
    /// The maximum number of dependencies to follow.
    static let reach = 1_000

    enum End: Equatable {
        /// The last one waits for nothing.
        case status(OperationStatus)
        /// The last one waits for one that was there before.
        case cycle
        /// The search was given up.
        case open
    }

    /// The names of the operations, the nearest first. Never empty.
    let names: [String]
    /// For how many others the operation itself waits besides the first one.
    let others: Int
    let end: End

    var text: String {
        let quoted = names.map { "“\($0)”" }
        var parts = ["waiting for " + quoted[0] + (others > 0 ? " and \(others) more" : "")]
        if quoted.count > 4 {
            // The nearest, and what it is all about.
            let last = quoted.count - 1
            parts += ["which waits for \(quoted[1])", "which waits over \(last - 2) more for \(quoted[last])"]
        } else {
            parts += quoted.dropFirst().map { "which waits for \($0)" }
        }
        switch end {
        case .status(.notStarted): parts.append("which has not been started")
        case .status(let status): parts.append(status.text)
        case .cycle: parts.append("in a cycle")
        case .open: parts.append("which waits for others")
        }
        return parts.joined(separator: ", ")
    }
}

extension DependencyChainDescription {
    /// Asks the operations, so nothing may be locked. `nil` if all that the operation depends on has finished.
    ///
    /// Complexity: linear in the dependencies of the operations on the way.
    init?(of operation: Operation, at now: ContinuousClock.Instant) {
        let unfinished = operation.unfinishedDependencies
        guard var last = unfinished.first else { return nil }
        others = unfinished.count - 1
        var names: [String] = []
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(operation)]
        // An object is known by its identity only as long as it lives.
        var way = [operation]
        var end = End.open
        while names.count < DependencyChainDescription.reach {
            names.append(last.displayName)
            way.append(last)
            guard seen.insert(ObjectIdentifier(last)).inserted else {
                end = .cycle
                break
            }
            let status = last.status(at: now)
            guard status == .notStarted, let next = last.dependencies.first(where: { !$0.isFinished }) else {
                end = .status(status)
                break
            }
            last = next
        }
        self.names = names
        self.end = end
        withExtendedLifetime(way) {}
    }
}
