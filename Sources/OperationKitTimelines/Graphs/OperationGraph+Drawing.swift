import OperationKit

extension OperationGraph {
    /// The graph as a flowchart of Mermaid, which GitHub, GitLab and many editors draw inside Markdown.
    ///
    /// Composites are boxes around what is inside them, dependencies are arrows from what has to finish first. The
    /// state is written behind the name, and shown as a color. Mermaid refuses more than 500 arrows, unless its `maxEdges` says
    /// otherwise.
    ///
    /// Complexity: linear in the operations and their dependencies.
    public var mermaid: String {
        func box(_ position: Int) -> String {
            let (name, details) = label(position)
            return "n\(position)[\"\(name.mermaidName) (\(details.mermaidEscaped))\"]"
        }
        var lines = ["flowchart LR"]
        lines += nodeLines(
            leaf: { ["\(box($0)):::\(nodes[$0].state)"] }, begin: { ["subgraph \(box($0))"] },
            end: { ["end", "class n\($0) \(nodes[$0].state)"] })
        lines += edges.map { "    n\($0.from) --> n\($0.to)" }
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
        func label(_ position: Int) -> String {
            let (name, details) = self.label(position)
            return "label=\"\(name.dot)\\n\(details.dot)\""
        }
        var lines = [
            "digraph Operations {", "    rankdir=LR;",
            "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];",
        ]
        lines += nodeLines(
            leaf: { position in
                let (fill, stroke) = nodes[position].state.colors
                return ["n\(position) [\(label(position)), fillcolor=\"\(fill)\", color=\"\(stroke)\"];"]
            },
            begin: { position in
                [
                    "subgraph cluster_\(position) {",
                    "    \(label(position)); color=\"\(nodes[position].state.colors.stroke)\";",
                    // Arrows need a node to end at.
                    "    n\(position) [shape=point, style=invis];",
                ]
            }, end: { _ in ["}"] })
        lines += edges.map { "    n\($0.from) -> n\($0.to);" }
        if omittedCount > 0 { lines.append("    omitted [label=\"… and \(omittedCount) more\", style=dashed];") }
        return (lines + ["}"]).joined(separator: "\n") + "\n"
    }

    /// The lines for each operation, those of a composite around what is inside it.
    private func nodeLines(
        leaf: (Int) -> [String], begin: (Int) -> [String], end: (Int) -> [String]
    ) -> [String] {
        let children = children
        var lines: [String] = []
        var open = children[nodes.count].reversed().map { (position: $0, depth: 1, isEnd: false) }
        while let (position, depth, isEnd) = open.popLast() {
            let isLeaf = children[position].isEmpty
            let texts = isLeaf ? leaf(position) : isEnd ? end(position) : begin(position)
            // Deep down, indentation would be most of the text.
            lines += texts.map { String(repeating: "    ", count: min(depth, 16)) + $0 }
            if isLeaf || isEnd { continue }
            open.append((position, depth, true))
            open += children[position].reversed().map { ($0, depth + 1, false) }
        }
        return lines
    }

    private func label(_ position: Int) -> (name: String, details: String) {
        let node = nodes[position]
        return (node.name, ([node.state.rawValue] + node.remarks).joined(separator: ", "))
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
        let selection = index.selection(atMost: maximumCount)
        let numbers = Dictionary(uniqueKeysWithValues: zip(selection, selection.indices))
        let nodes = selection.map { position in
            let entry = timeline.entries[position]
            return Node(
                name: entry.name, typeName: entry.typeName,
                state: State(
                    entry.outcome, isExecuting: entry.begin != nil, isCancelled: entry.cancelled != nil),
                parent: index.parents[position].flatMap { numbers[$0] }, remarks: [])
        }
        let edges = selection.enumerated().flatMap { number, position in
            timeline.entries[position].dependencies.compactMap { index.positions[$0] }.compactMap { numbers[$0] }
                .map { Edge(from: $0, to: number) }
        }
        let omittedCount = timeline.entries.count - selection.count
        self.init(nodes: nodes, edges: edges, omittedCount: omittedCount + min(timeline.droppedCount, .max / 2))
    }
}
