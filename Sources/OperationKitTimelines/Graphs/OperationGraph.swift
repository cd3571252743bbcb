import Foundation
public import OperationKit

/// Which operations are inside a composite, what they depend on, and how far they have come: a value to draw.
///
/// ```swift
/// let sync = CompoundOperation(name: "Sync")
/// let login = ThrowingBlockOperation(name: "login") {}
/// let upload = ThrowingBlockOperation(name: "upload") {}
/// upload.addDependency(login)
/// try sync.addOperations([login, upload])
/// print(sync.graph.mermaid)
/// ```
///
/// A composite releases its children as they finish, so its graph has those that have not finished, and says how many
/// have. For a graph with all of them, during the run and after it, record a timeline, and use
/// ``OperationTimeline/graph``.
public struct OperationGraph: Sendable, Equatable {
    /// How far an operation has come.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// It has not started.
        case waiting
        /// It has started and not finished.
        case executing
        /// It finished without an error.
        case succeeded
        /// It finished with an error that is no cancellation.
        case failed
        /// It finished as cancelled, or was cancelled before its start.
        case cancelled
        /// It did not run, because another operation did not succeed.
        case skipped = "did not run"
    }

    /// An operation.
    public struct Node: Sendable, Equatable {
        /// The name of the operation, or what messages call it.
        public let name: String
        /// Its type.
        public let typeName: String
        /// How far it has come.
        public let state: State
        /// The composite around it: an index of ``OperationGraph/nodes``. `nil` for the outermost one, and for an
        /// operation outside of it that others depend on.
        public let parent: Int?
        /// More about a composite, in words: how many of its children have ended.
        public let remarks: [String]
    }

    /// A dependency.
    public struct Edge: Sendable, Hashable {
        /// The operation that has to finish first: an index of ``OperationGraph/nodes``.
        public let from: Int
        /// The one that waits for it.
        public let to: Int
    }

    /// The operations, composites before what is inside them.
    public let nodes: [Node]
    /// The dependencies between them.
    public let edges: [Edge]
    /// How many operations are not there because there were too many. For the graph of a composite, those are children of
    /// operations that are there.
    public let omittedCount: Int

    /// The positions of the nodes directly inside each, and of those that are inside none at the end.
    var children: [[Int]] {
        nodes.indices.reduce(into: Array(repeating: [], count: nodes.count + 1)) { children, position in
            children[nodes[position].parent ?? nodes.count].append(position)
        }
    }
}

extension CompoundOperation {
    /// The compound, its children that have not finished, what is inside them, and their dependencies, as they are
    /// now: at most 500 operations.
    ///
    /// May be read at any time, on any thread. Before the run all children are there, after it only the compound
    /// itself.
    ///
    /// Complexity: linear in the operations and their dependencies.
    public final var graph: OperationGraph { OperationGraph(of: self) }
}

extension OperationGraph {
    /// Creates the graph of an operation, as it is now. Nothing is kept alive.
    ///
    /// May be called at any time, on any thread. Operations are asked for their names, their state and their
    /// dependencies; where these are overridden, the overrides are called. Operations outside of the composite that
    /// others depend on are there, too.
    ///
    /// Complexity: linear in the operations and their dependencies.
    ///
    /// - Parameters:
    ///   - operation: A composite. The graph of another operation has one node, and those that it depends on.
    ///   - maximumCount: How many operations there may be. Outer ones come before inner ones.
    public init(of operation: AsyncOperation, maximumCount: Int = 500) {
        let maximumCount = max(1, maximumCount)
        var operations: [Operation] = []
        var nodes: [Node] = []
        var positions: [ObjectIdentifier: Int] = [:]
        var omittedCount = 0
        func add(_ operation: Operation, name: String? = nil, parent: Int? = nil) {
            guard nodes.count < maximumCount else { return }
            positions[ObjectIdentifier(operation)] = nodes.count
            let isFinished = operation.isFinished
            let ours = operation as? AsyncOperation
            // An operation of another class may be writing its error before its end.
            let state = State(
                isFinished
                    ? operation.endingError.map { .init($0, hasRun: ours?.hasReachedMain == true) } ?? .success : nil,
                isExecuting: operation.isExecuting, isCancelled: operation.isCancelled)
            let children = isFinished ? nil : ours?.unfinishedChildren(atMost: 0)
            nodes.append(
                Node(
                    name: name ?? operation.displayName, typeName: operation.titleInMessages, state: state,
                    parent: parent, remarks: children?.remarks ?? []))
            operations.append(operation)
        }

        add(operation)
        // Composites may be nested to any depth, so this doesn't recurse.
        var next = 0
        while next < operations.count {
            let composite = operations[next] as? AsyncOperation
            if let inside = composite?.unfinishedChildren(atMost: maximumCount - nodes.count) {
                omittedCount += inside.omitted
                for (child, name) in inside.children { add(child, name: name, parent: next) }
            }
            next += 1
        }
        var edges: [Edge] = []
        // What others depend on is added, but not what that depends on.
        for (position, operation) in operations.enumerated() {
            for dependency in operation.dependencies {
                let id = ObjectIdentifier(dependency)
                if positions[id] == nil {
                    let parent = (dependency as? AsyncOperation)?.enclosingComposite
                    add(dependency, parent: parent.flatMap { positions[ObjectIdentifier($0)] })
                }
                if let from = positions[id] { edges.append(Edge(from: from, to: position)) }
            }
        }
        self.init(nodes: nodes, edges: edges, omittedCount: omittedCount)
    }
}

extension OperationGraph.State {
    init(_ outcome: OperationTimeline.Outcome?, isExecuting: Bool, isCancelled: Bool) {
        self =
            switch outcome {
            case .success: .succeeded
            case .cancelled: .cancelled
            case .failed: .failed
            case .skipped: .skipped
            case nil: isExecuting ? .executing : isCancelled ? .cancelled : .waiting
            }
    }
}
