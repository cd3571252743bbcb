import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Graphs of operations", .hangGuard) struct OperationGraphTests {
    /// A compound with a stock operation, a nested compound, and a dependency outside of it.
    private func makeCompound() throws -> CompoundOperation {
        let stock = BlockOperation {}
        stock.name = "stock \"1\""
        let inner = CompoundOperation(name: "inner", operations: [ScriptedOperation("deep")])
        inner.addDependency(stock)
        let last = ScriptedOperation("last")
        last.addDependency(inner)
        last.addDependency(ScriptedOperation.idle("out&side"))
        return CompoundOperation(name: "all", operations: [stock, inner, last])
    }

    @Test("Before the run, a graph has all that is inside a compound, and what that depends on") func before() throws {
        let compound = try makeCompound()
        #expect(
            compound.graph.mermaid == """
                flowchart LR
                    subgraph n0["all (waiting, 0 of 3 children have ended)"]
                        n1["stock #34;1#34; (waiting)"]:::waiting
                        subgraph n2["inner (waiting, 0 of 1 children have ended)"]
                            n4["deep (waiting)"]:::waiting
                        end
                        class n2 waiting
                        n3["last (waiting)"]:::waiting
                    end
                    class n0 waiting
                    n5["out#38;side (waiting)"]:::waiting
                    n1 --> n2
                    n2 --> n3
                    n5 --> n3
                    classDef waiting fill:#f6f8fa,stroke:#8c959f,color:#1f2328

                """)
        #expect(
            compound.graph.dot == """
                digraph Operations {
                    rankdir=LR;
                    node [shape=box, style="rounded,filled", fontname="sans-serif"];
                    subgraph cluster_0 {
                        label="all\\nwaiting, 0 of 3 children have ended"; color="#8c959f";
                        n0 [shape=point, style=invis];
                        n1 [label="stock \\"1\\"\\nwaiting", fillcolor="#f6f8fa", color="#8c959f"];
                        subgraph cluster_2 {
                            label="inner\\nwaiting, 0 of 1 children have ended"; color="#8c959f";
                            n2 [shape=point, style=invis];
                            n4 [label="deep\\nwaiting", fillcolor="#f6f8fa", color="#8c959f"];
                        }
                        n3 [label="last\\nwaiting", fillcolor="#f6f8fa", color="#8c959f"];
                    }
                    n5 [label="out&amp;side\\nwaiting", fillcolor="#f6f8fa", color="#8c959f"];
                    n1 -> n2;
                    n2 -> n3;
                    n5 -> n3;
                }

                """)
    }

    @Test("During the run, a graph has what has not finished, and after it the compound alone") func duringAndAfter()
        async
    {
        let held = ScriptedOperation.idle("held")
        let compound = CompoundOperation(name: "all", operations: [ScriptedOperation("done"), held])
        compound.start()
        await eventually("done has not finished") { compound.finishedOperationCount == 1 && held.isExecuting }
        let graph = compound.graph
        #expect(graph.nodes.map(\.name) == ["all", "held"] && graph.nodes.map(\.state) == [.executing, .executing])
        #expect(graph.nodes[0].remarks == ["1 of 2 children have ended"] && graph.nodes[1].parent == 0)
        held.finish(withError: TestError.first)
        try? await compound.finished()
        #expect(compound.graph.nodes.map(\.state) == [.failed] && compound.graph.edges == [])
        #expect(compound.graph.nodes[0].remarks == [])
    }

    @Test("States are those of the operations, also of Foundation's") func states() {
        let failed = ScriptedOperation("") { $0.finish(withError: TestError.first) }
        let (succeeded, cancelled) = (ScriptedOperation(), ScriptedOperation())
        cancelled.cancel()
        let stock = [BlockOperation {}, BlockOperation {}, BlockOperation {}]
        stock[0].cancel()
        for operation in [failed, succeeded, cancelled, stock[0], stock[1]] as [Operation] { operation.start() }
        let other = DependencyError.dependencyFailed(operation: "a", dependency: "b", error: TestError.first)
        let passing = ScriptedOperation { $0.finish(withError: other) }
        let skipped = ScriptedOperation()
        skipped.requireSuccess(of: failed)
        for operation in [passing, skipped] { operation.start() }
        let all = ScriptedOperation()
        let others = [failed, succeeded, cancelled, passing, skipped] + stock as [Operation]
        for operation in others { all.addDependency(operation) }
        #expect(
            OperationGraph(of: all).nodes.map(\.state) == [
                .waiting, .failed, .succeeded, .cancelled, .failed, .skipped, .cancelled, .succeeded, .waiting,
            ])
    }

    /// Says whether its error was read before its end.
    private final class Asked: Operation, FailableOperation, @unchecked Sendable {
        let isAsked = Shared(false)

        var error: (any Error)? {
            if !isFinished { isAsked.value = true }
            return nil
        }
    }

    @Test("The error of an operation is read when it has finished, and not before") func errors() {
        let asked = Asked()
        #expect(OperationGraph(of: CompoundOperation(operations: [asked])).nodes.last?.state == .waiting)
        #expect(!asked.isAsked.value)
    }

    @Test(
        "Names are no Markdown for Mermaid",
        arguments: [
            ("1. login", "#49;. login"), ("- upload", "#45; upload"), ("+ more", "#43; more"),
            ("*a* _b_", "#42;a#42; #95;b#95;"), ("a - 1.", "a - 1."),
        ])
    func markdown(name: String, label: String) {
        let mermaid = OperationGraph(of: ScriptedOperation(name)).mermaid
        #expect(mermaid.contains("n0[\"\(label) (waiting)\"]"), "\(mermaid)")
    }

    @Test("If there are too many operations, a graph says how many are not there") func maximumCount() {
        let compound = CompoundOperation(operations: (0..<10).map { ScriptedOperation("\($0)") })
        let graph = OperationGraph(of: compound, maximumCount: 4)
        #expect(graph.nodes.count == 4 && graph.omittedCount == 7)
        #expect(graph.mermaid.contains("omitted[\"… and 7 more\"]") && graph.dot.contains("… and 7 more"))
        #expect(OperationGraph(of: compound, maximumCount: 11).omittedCount == 0)
    }

    @Test("A child that has ended, and that another one still depends on, is inside its composite") func endedChild()
        async
    {
        let (first, second, third) = (BlockOperation {}, ScriptedOperation.idle("second"), ScriptedOperation("third"))
        let ended = ScriptedOperation("ended")
        for operation in [first, second, ended] { third.addDependency(operation) }
        let compound = CompoundOperation(operations: [ended, second, third])
        compound.start()
        await eventually("it has not ended") { ended.isFinished }
        let nodes = compound.graph.nodes
        #expect(
            nodes.first { $0.name == "ended" }?.parent == 0
                && nodes.first { $0.name == "BlockOperation" }?.parent == nil)
        compound.cancel()
        second.finish()
        first.start()
    }

    @Test("The graph of a timeline has the operations that have finished") func timeline() {
        let graph = OperationTimeline.sample.graph
        #expect(
            graph.nodes.map(\.state) == [
                .failed, .succeeded, .failed, .succeeded, .cancelled, .succeeded, .skipped, .executing,
            ])
        #expect(graph.edges.contains(OperationGraph.Edge(from: 1, to: 2)) && graph.edges.count == 4)
        #expect(graph.nodes[1].parent == 0 && graph.nodes[7].parent == nil)
        #expect(OperationGraph(of: .wide(20), maximumCount: 6).omittedCount == 15)
    }
}
