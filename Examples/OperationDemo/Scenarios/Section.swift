import CommandLineSupport
import Foundation
import OperationKit
import OperationKitTimelines

/// A part of a scenario: what is done, and on which queue.
struct Section: Sendable {
    /// What came of it, as sentences. Called after everything has ended.
    typealias Findings = @Sendable () -> [String]

    let title: String
    /// What the row of the queue is called.
    let name: String
    /// How many operations the queue runs at the same time.
    let limit: Int
    let play: @Sendable (_ bench: Bench) async -> Findings

    func queue() -> OperationQueue {
        let queue = OperationQueue()
        queue.name = name
        queue.maxConcurrentOperationCount = limit
        return queue
    }

    /// The parts of a scenario that the mode asks for.
    static func sections(of scenario: Scenario, _ options: Options) -> [Section] {
        let mode = options.mode ?? scenario.defaultMode
        if scenario == .collection { return CollectionScenario.sections(mode, width: options.width) }
        let play: @Sendable (Bench) async -> Findings = { bench in await scenario.play(on: bench) }
        let serial = Section(
            title: "serial queue: one operation at a time", name: "serial queue", limit: 1, play: play)
        let concurrent = Section(
            title: "concurrent queue: up to \(counted(options.width, "operation")) at a time",
            name: "concurrent queue", limit: options.width, play: play)
        return switch mode {
        case .serial: [serial]
        case .concurrent: [concurrent]
        case .both: [serial, concurrent]
        }
    }
}

extension Scenario {
    /// Adds the operations of the scenario to the queue, in the course of time.
    ///
    /// - Parameter bench: The queue, and what operations are made with.
    /// - Returns: Says what came of it, once all of them have ended.
    func play(on bench: Bench) async -> Section.Findings {
        switch self {
        case .tour:
            bench.enqueue(
                bench.sync("sync", 0.3), bench.naive("naive", 0.5), bench.async("async", 0.4),
                bench.compound("compound", [0.2, 0.4, 0.3]))
            return { Findings(bench.recording.timeline).earlyEnds }
        case .sync:
            bench.enqueue(bench.sync("sync-1", 0.3), bench.sync("sync-2", 0.4), bench.sync("sync-3", 0.2))
        case .naive:
            bench.enqueue(bench.naive("naive-1", 0.3), bench.naive("naive-2", 0.4), bench.naive("naive-3", 0.2))
            return { Findings(bench.recording.timeline).earlyEnds }
        case .async:
            bench.enqueue(bench.async("async-1", 0.3), bench.async("async-2", 0.4), bench.async("async-3", 0.2))
        case .compound:
            bench.enqueue(bench.compound("album", [0.2, 0.3, 0.1]), bench.compound("video", [0.3, 0.1, 0.2]))
        case .cancel: return await CancelScenario.play(on: bench)
        case .errors: return ErrorsScenario.play(on: bench)
        case .chain: return ChainScenario.play(on: bench)
        case .waterfall: return await WaterfallScenario.play(on: bench)
        case .glue: return GlueScenario.play(on: bench)
        case .policies: return PoliciesScenario.play(on: bench)
        case .criticalPath: return CriticalPathScenario.play(on: bench)
        case .collection: preconditionFailure("collection has no queue, but strategies")
        case .files: preconditionFailure("files has a command of its own")
        }
        return { [] }
    }
}

/// What a timeline shows, in sentences.
struct Findings {
    private let timeline: OperationTimeline

    init(_ timeline: OperationTimeline) {
        self.timeline = timeline
    }

    /// The operations that were finished before their work was. That is seen from their ends, whatever their types are.
    var earlyEnds: [String] {
        timeline.entries.compactMap { work in
            guard let parent = work.parent.flatMap({ timeline[$0] }), parent.typeName != "OperationQueue",
                let end = parent.finished, let workEnd = work.finished, end < workEnd
            else { return nil }
            // Differences of what the log says, so that the reader's sums come out.
            let early = workEnd.milliseconds - end.milliseconds
            return "\(parent.name) was finished \(early) ms before its work."
        }
    }

    /// How an operation ended, in words that follow its name.
    func end(of name: String) -> String {
        guard let entry = timeline.entries.first(where: { $0.name == name }) else { return "was never added" }
        switch entry.outcome {
        case .success: return "succeeded"
        case .failed(let error): return "failed: \(error)"
        case .skipped: return "did not run"
        case .cancelled: return entry.running == nil ? "never ran" : "was stopped"
        case nil: return "has not finished"
        }
    }
}
