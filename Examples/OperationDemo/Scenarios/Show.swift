import Foundation
import OperationKit

/// Runs a scenario on the queues that the mode asks for, prints what happens, and draws it afterwards.
struct Show {
    let scenario: Scenario
    let options: Options
    let console: Console

    func run() async {
        if scenario == .collection { return await CollectionScenario(options: options, console: console).run() }
        let sections: [Section] =
            switch options.mode ?? scenario.defaultMode {
            case .serial: [.serial]
            case .concurrent: [.concurrent(width: options.width)]
            case .both: [.serial, .concurrent(width: options.width)]
            }

        var durations: [Int] = []
        for section in sections {
            if !durations.isEmpty { console.print("") }
            durations.append(await run(section))
        }
        if durations.count == 2 {
            console.print("")
            let serial = "\(durations[0]) ms on the serial queue"
            console.print("The same work took \(serial), \(durations[1]) ms on the concurrent one.")
        }
    }

    /// Returns the milliseconds from the first event to the last.
    private func run(_ section: Section) async -> Int {
        console.print(console.style.bold("\(scenario.rawValue), \(section.title)"))
        console.print("")

        let line = EventLine(style: console.style)
        let bench = Bench(queue: section.queue(), speed: options.speed) { [console] event in
            console.print(line.text(for: event))
        }
        let report = await play(on: bench)
        await bench.log.settled()

        let events = bench.log.events
        console.print("")
        for line in Timeline(events).lines(columns: console.columns, style: console.style) { console.print(line) }
        let findings = Findings(events).sentences + report
        if !findings.isEmpty { console.print("") }
        for sentence in findings { console.print(sentence) }
        return (events.last?.time.milliseconds ?? 0) - (events.first?.time.milliseconds ?? 0)
    }

    /// Returns what is to be printed below the timeline.
    private func play(on bench: Bench) async -> [String] {
        switch scenario {
        case .tour:
            bench.enqueue(
                bench.sync("sync", 0.3), bench.naive("naive", 0.5), bench.async("async", 0.4),
                bench.compound("compound", [0.2, 0.4, 0.3]))
        case .sync:
            bench.enqueue(bench.sync("sync-1", 0.3), bench.sync("sync-2", 0.4), bench.sync("sync-3", 0.2))
        case .naive:
            bench.enqueue(bench.naive("naive-1", 0.3), bench.naive("naive-2", 0.4), bench.naive("naive-3", 0.2))
        case .async:
            bench.enqueue(bench.async("async-1", 0.3), bench.async("async-2", 0.4), bench.async("async-3", 0.2))
        case .compound:
            bench.enqueue(bench.compound("album", [0.2, 0.3, 0.1]), bench.compound("video", [0.3, 0.1, 0.2]))
        case .cancel:
            await CancelScenario.play(on: bench)
        case .errors:
            return await ErrorsScenario.play(on: bench, style: console.style)
        case .chain:
            await ChainScenario.play(on: bench)
        case .waterfall:
            await WaterfallScenario.play(on: bench)
        case .glue:
            await GlueScenario.play(on: bench)
        case .policies:
            return await PoliciesScenario.play(on: bench)
        case .collection:
            preconditionFailure("collection has no queue, but strategies")
        case .files:
            preconditionFailure("files has a command of its own")
        }
        return []
    }
}

/// A part of a scenario: the queue it runs on.
enum Section {
    case serial
    case concurrent(width: Int)

    var title: String {
        switch self {
        case .serial: "serial queue: one operation at a time"
        case .concurrent(let width): "concurrent queue: up to \(counted(width, "operation")) at a time"
        }
    }

    func queue() -> OperationQueue {
        switch self {
        case .serial:
            return .serial(name: "serial")
        case .concurrent(let width):
            let queue = OperationQueue()
            queue.name = "concurrent"
            queue.maxConcurrentOperationCount = width
            return queue
        }
    }
}

/// What the events of a section show, in sentences: who claimed to be complete too early.
struct Findings {
    let sentences: [String]

    init(_ events: [Event]) {
        var completions: [Subject: Duration] = [:]
        var early: [(name: String, milliseconds: Int)] = []
        for event in events {
            if event.stage == .completion { completions[event.subject] = event.time }
            if event.stage.endsWork, let completion = completions[event.subject] {
                let difference = event.time.milliseconds - completion.milliseconds
                early.append((event.subject.name, difference))
            }
        }
        sentences = early.map { name, milliseconds in
            "\(name): completion came \(milliseconds) ms before its work finished."
        }
    }
}
