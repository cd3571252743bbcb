import OperationKit

extension OperationGraph {
    /// The graph as a flowchart of Mermaid, which GitHub, GitLab and many editors draw inside Markdown.
    ///
    /// Composites are boxes around what is inside them, dependencies are arrows from what has to finish first. The
    /// state is written behind the name, and shown as a color.
    ///
    /// Complexity: linear in the operations and their dependencies.
    public var mermaid: String {
        var lines = ["flowchart LR"]
        visit { position, depth, event in
            let indentation = String(repeating: "    ", count: depth + 1)
            switch event {
            case .leaf:
                lines.append("\(indentation)n\(position)[\"\(mermaidLabel(position))\"]:::\(nodes[position].state)")
            case .begin: lines.append("\(indentation)subgraph n\(position)[\"\(mermaidLabel(position))\"]")
            case .end:
                lines.append("\(indentation)end")
                lines.append("\(indentation)class n\(position) \(nodes[position].state)")
            }
        }
        for edge in edges { lines.append("    n\(edge.from) --> n\(edge.to)") }
        if omittedCount > 0 { lines.append("    omitted[\"… and \(omittedCount) more\"]") }
        for state in State.allCases where nodes.contains(where: { $0.state == state }) {
            let (fill, stroke) = state.colors
            lines.append("    classDef \(state) fill:\(fill),stroke:\(stroke),color:#1f2328")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The graph in the DOT language, for Graphviz: `dot -Tsvg`.
    ///
    /// Composites are boxes around what is inside them, dependencies are arrows from what has to finish first. The
    /// state is written below the name, and shown as a color.
    ///
    /// Complexity: linear in the operations and their dependencies.
    public var dot: String {
        var lines = [
            "digraph Operations {", "    compound=true;", "    rankdir=LR;",
            "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];",
        ]
        var composites: Set<Int> = []
        visit { position, depth, event in
            let indentation = String(repeating: "    ", count: depth + 1)
            let (fill, stroke) = nodes[position].state.colors
            switch event {
            case .leaf:
                lines.append(
                    "\(indentation)n\(position) [label=\"\(dotLabel(position))\", fillcolor=\"\(fill)\", "
                        + "color=\"\(stroke)\"];"
                )
            case .begin:
                composites.insert(position)
                lines.append("\(indentation)subgraph cluster_\(position) {")
                lines.append("\(indentation)    label=\"\(dotLabel(position))\"; color=\"\(stroke)\";")
                // Arrows need a node, also where they end at a box.
                lines.append("\(indentation)    n\(position) [shape=point, style=invis];")
            case .end: lines.append("\(indentation)}")
            }
        }
        for edge in edges {
            var attributes: [String] = []
            if composites.contains(edge.from) { attributes.append("ltail=cluster_\(edge.from)") }
            if composites.contains(edge.to) { attributes.append("lhead=cluster_\(edge.to)") }
            let list = attributes.isEmpty ? "" : " [\(attributes.joined(separator: ", "))]"
            lines.append("    n\(edge.from) -> n\(edge.to)\(list);")
        }
        if omittedCount > 0 { lines.append("    omitted [label=\"… and \(omittedCount) more\", style=dashed];") }
        return (lines + ["}"]).joined(separator: "\n") + "\n"
    }

    private enum Event {
        case leaf, begin, end
    }

    /// Calls a closure with each operation, and before and after what is inside it if there is something.
    private func visit(_ body: (_ position: Int, _ depth: Int, Event) -> Void) {
        let children = children
        var open: [(position: Int, depth: Int, isEnd: Bool)] = children[nodes.count].reversed().map { ($0, 0, false) }
        while let (position, depth, isEnd) = open.popLast() {
            if isEnd {
                body(position, depth, .end)
            } else if children[position].isEmpty {
                body(position, depth, .leaf)
            } else {
                body(position, depth, .begin)
                open.append((position, depth, true))
                open += children[position].reversed().map { ($0, depth + 1, false) }
            }
        }
    }

    private func mermaidLabel(_ position: Int) -> String {
        let node = nodes[position]
        let details = ([node.state.rawValue] + node.remarks).joined(separator: ", ")
        return node.name.mermaidEscaped + " (\(details.mermaidEscaped))"
    }

    private func dotLabel(_ position: Int) -> String {
        let node = nodes[position]
        let details = ([node.state.rawValue] + node.remarks).joined(separator: ", ")
        return node.name.dot + "\\n" + details.dot
    }
}

extension OperationGraph.State {
    /// The color of the box and of its border. Text in it is dark, also where the page is.
    fileprivate var colors: (fill: String, stroke: String) {
        switch self {
        case .waiting: ("#f6f8fa", "#8c959f")
        case .executing: ("#ddf4ff", "#0969da")
        case .succeeded: ("#dafbe1", "#1a7f37")
        case .failed: ("#ffebe9", "#cf222e")
        case .cancelled: ("#fbefff", "#8250df")
        case .skipped: ("#eaeef2", "#57606a")
        }
    }
}

extension OperationTimeline {
    /// The operations as a graph, with their dependencies and how far they had come at the end of the timeline: at
    /// most 500.
    ///
    /// Unlike the graph of a composite, it has those that have finished.
    ///
    /// Complexity: O(n log n) in the entries and their dependencies.
    public var graph: OperationGraph { OperationGraph(of: self) }
}

extension OperationGraph {
    /// Creates the graph of a timeline: all that was recorded.
    ///
    /// Complexity: O(n log n) in the entries and their dependencies.
    ///
    /// - Parameters:
    ///   - timeline: The operations.
    ///   - maximumCount: How many operations there may be. Outer ones come before inner ones.
    public init(of timeline: OperationTimeline, maximumCount: Int = 500) {
        let index = TimelineIndex(timeline.entries)
        let selection = index.selection(atMost: max(1, maximumCount))
        var numbers: [Int: Int] = [:]
        for (number, position) in selection.enumerated() { numbers[position] = number }
        let nodes = selection.map { position in
            let entry = timeline.entries[position]
            return Node(
                name: entry.name, typeName: entry.typeName, state: State(of: entry),
                parent: index.parent(of: position).flatMap { numbers[$0] }, remarks: [])
        }
        let edges = selection.flatMap { position in
            timeline.entries[position].dependencies.compactMap { id -> Edge? in
                guard let from = index.position(of: id).flatMap({ numbers[$0] }), let to = numbers[position] else {
                    return nil
                }
                return Edge(from: from, to: to)
            }
        }
        self.init(nodes: nodes, edges: edges, omittedCount: timeline.entries.count - selection.count)
    }
}

extension OperationGraph.State {
    /// How far an operation of a timeline has come.
    fileprivate init(of entry: OperationTimeline.Entry) {
        self =
            switch entry.outcome {
            case .success: .succeeded
            case .cancelled: .cancelled
            case .failed: .failed
            case .skipped: .skipped
            case nil where entry.started != nil || entry.running != nil: .executing
            case nil: entry.cancelled == nil ? .waiting : .cancelled
            }
    }
}
