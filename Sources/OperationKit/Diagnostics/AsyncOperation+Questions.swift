package import Foundation

// What the other products of the package ask beside the public interface.
extension AsyncOperation {
    /// The composite that the operation is a child of.
    package final var enclosingComposite: AsyncOperation? {
        withState { $0.membership.parent }?.operation
    }

    /// Whether the operation consists of others.
    package final var isComposite: Bool { children != nil }

    /// The names of the resources that the operation has requested, until its end.
    package final var requestedResourceNames: [String] { heldResourceNames }

    /// What messages call the class, or what the library makes operations of the class from.
    package static var nameInMessages: String { typeTitle }

    /// What messages call the class of the operation, or what the library has made the operation from.
    package final var titleInMessages: String { title }

    /// What the operation does, as in its `debugDescription`, without times.
    package final var activityInMessages: String { status(at: .now).withoutAge.text }

    /// How far its children have come, from 0 to 1.
    package final var childrenFraction: Double { children?.fraction ?? 0 }

    /// The children that have not finished, in the order in which they were added, with what messages call them.
    ///
    /// - Parameter count: How many of them are returned.
    /// - Returns: The children, how many others there are, and remarks on all of them. `nil` if it is no composite.
    package final func unfinishedChildren(
        atMost count: Int
    ) -> (children: [(operation: Operation, name: String)], omitted: Int, remarks: [String])? {
        guard let snapshot = ownChildren?.snapshot(atMost: count) else { return nil }
        let children = snapshot.children.sorted { $0.index < $1.index }
        return (
            children.map { ($0.operation, $0.operation.displayName(at: $0.index)) }, snapshot.omitted, snapshot.summary
        )
    }
}

extension Operation {
    /// What messages call the operation.
    package final var nameInMessages: String { displayName }
}

extension OperationStatus {
    /// The same without the elapsed time.
    fileprivate var withoutAge: Self {
        switch self {
        case .preparing(let description, _): .preparing(description, nil)
        case .executing: .executing(nil)
        case .draining: .draining(nil)
        case .notStarted, .starting, .finishing, .finished: self
        }
    }
}
