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
    public enum State: String, Sendable, CaseIterable {
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
    /// How many operations are not there because there were too many.
    public let omittedCount: Int

    init(nodes: [Node], edges: [Edge], omittedCount: Int) {
        (self.nodes, self.edges, self.omittedCount) = (nodes, edges, omittedCount)
    }

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
        var search = GraphSearch(maximumCount: max(1, maximumCount))
        self = search.graph(of: operation)
    }
}

/// Finds what is inside a composite. Composites may be nested to any depth, so it doesn't recurse.
private struct GraphSearch {
    private let maximumCount: Int
    private var operations: [Operation] = []
    private var nodes: [OperationGraph.Node] = []
    private var positions: [ObjectIdentifier: Int] = [:]
    private var omittedCount = 0

    init(maximumCount: Int) {
        self.maximumCount = maximumCount
    }

    mutating func graph(of root: AsyncOperation) -> OperationGraph {
        add(root, name: root.nameInMessages, parent: nil)
        var next = 0
        while next < operations.count {
            addChildren(of: next)
            next += 1
        }
        let insideCount = operations.count
        var edges: [OperationGraph.Edge] = []
        for position in 0..<insideCount {
            for dependency in operations[position].dependencies {
                if positions[ObjectIdentifier(dependency)] == nil {
                    add(dependency, name: dependency.nameInMessages, parent: nil)
                }
                guard let from = positions[ObjectIdentifier(dependency)] else { continue }
                edges.append(OperationGraph.Edge(from: from, to: position))
            }
        }
        return OperationGraph(nodes: nodes, edges: edges, omittedCount: omittedCount)
    }

    private mutating func addChildren(of position: Int) {
        let room = max(0, maximumCount - nodes.count)
        guard let inside = (operations[position] as? AsyncOperation)?.unfinishedChildren(atMost: room) else { return }
        omittedCount += inside.omitted
        for (operation, name) in inside.children { add(operation, name: name, parent: position) }
    }

    private mutating func add(_ operation: Operation, name: String, parent: Int?) {
        guard nodes.count < maximumCount else {
            omittedCount += 1
            return
        }
        positions[ObjectIdentifier(operation)] = nodes.count
        let isFinished = operation.isFinished
        let asyncOperation = operation as? AsyncOperation
        nodes.append(
            OperationGraph.Node(
                name: name, typeName: asyncOperation?.titleInMessages ?? String(describing: type(of: operation)),
                state: OperationGraph.State(of: operation), parent: parent,
                remarks: isFinished ? [] : asyncOperation?.unfinishedChildren(atMost: 0)?.remarks ?? []))
        operations.append(operation)
    }
}

extension OperationGraph.State {
    /// How far an operation has come, as it says itself.
    fileprivate init(of operation: Operation) {
        guard operation.isFinished else {
            self = operation.isExecuting ? .executing : operation.isCancelled ? .cancelled : .waiting
            return
        }
        if let error = (operation as? any FailableOperation)?.error {
            if case DependencyError.dependencyFailed = error, !error.isCancellation {
                self = .skipped
            } else {
                self = error.isCancellation ? .cancelled : .failed
            }
        } else {
            self = operation.isCancelled && !(operation is any FailableOperation) ? .cancelled : .succeeded
        }
    }
}
