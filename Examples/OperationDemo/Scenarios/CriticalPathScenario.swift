import Foundation
import OperationKit
import OperationKitTimelines

/// A build whose steps depend on each other, and what decides how long it takes.
///
/// “docs” is long, and not on the path: to make it faster is in vain. Of “test” and “ui-test”, one waits for the simulator
/// that the other holds.
enum CriticalPathScenario {
    static func play(on bench: Bench) -> Section.Findings {
        let fetch = bench.async("fetch", 0.2)
        let core = bench.async("compile-core", 0.6)
        let app = bench.async("compile-app", 0.4)
        let docs = bench.async("docs", 0.9)
        let lint = bench.async("lint", 0.3)
        let test = bench.async("test", 0.3)
        let uiTest = bench.async("ui-test", 0.5)
        let package = bench.async("package", 0.1)
        for step in [core, docs, lint] { step.addDependency(fetch) }
        app.addDependency(core)
        for step in [test, uiTest] { step.addDependency(app) }
        for step in [docs, lint, test, uiTest] { package.addDependency(step) }
        let simulator = ExclusiveAccess("simulator")
        for step in [test, uiTest] { step.require(simulator) }

        let build = bench.compound("build", [fetch, core, app, docs, lint, test, uiTest, package])
        bench.enqueue(build)
        return { findings(bench.recording.timeline.part(inside: build.observationID)) }
    }

    /// The steps that decided, and what can be gained at most without the work of one.
    private static func findings(_ timeline: OperationTimeline) -> [String] {
        // The composite itself is at the beginning and the end of every path.
        let steps = timeline.criticalPath.filter { timeline[$0.operation]?.isComposite == false }
        let summary = timeline.summary
        return ["The critical path:"] + steps.map { "  \(timeline.description(of: $0))" }
            + ["It took \(summary.wallTime.milliseconds) ms. It cannot be shorter than:"]
            + summary.bounds.map { "  \($0)" }
    }
}
