import CommandLineSupport
import Foundation
import OperationKit
import OperationKitTimelines

/// Runs a scenario on the queues that the mode asks for, draws what happens, and says what came of it.
struct Show {
    let scenario: Scenario
    let options: Options
    let console: Console

    func run() async -> ExitStatus {
        let files = OutputFiles(options)
        // Nothing to wait for: the operations of a scenario leave nothing behind.
        let interruption = Interruption { ExitStatus.interrupted.exit() }
        defer { interruption.end() }
        do {
            try files.check()
            let runs = await perform()
            // A file that is being written is finished.
            interruption.ignore()
            try conclude(runs, files)
            return .success
        } catch {
            Console.complain("OperationDemo: cannot write “\(error.path.printable)”: \(error.reason)")
            return .outputFailed
        }
    }

    private var report: Report {
        Report(scenario: scenario, style: console.style, showsLog: options.showsLog)
    }

    private func perform() async -> [Run] {
        var runs: [Run] = []
        if !options.isMermaid { console.print(report.header(columns: console.columns)) }
        for section in Section.sections(of: scenario, options) {
            let recording = Recording(queue: section.name, limit: section.limit)
            let bench = Bench(queue: section.queue(), recording: recording, speed: options.speed)
            let view = console.isAnimated && !options.isMermaid ? view(of: recording, section, after: runs) : nil
            let findings = await section.play(bench)
            await recording.settled()
            view?.end()
            runs.append(
                Run(section: section, timeline: recording.timeline, notes: recording.notes, findings: findings()))
        }
        return runs
    }

    private func view(of recording: Recording, _ section: Section, after runs: [Run]) -> LiveView {
        LiveView(console: console) { [report] columns, rows in
            report.frame(runs, section, recording.timeline, columns: columns, rows: rows)
        }
    }

    private func conclude(_ runs: [Run], _ files: OutputFiles) throws(OutputError) {
        // Each run begins at 0, so that they can be compared.
        let timeline = OperationTimeline(
            entries: runs.flatMap(\.timeline.entries), startDate: runs.first?.timeline.startDate)
        if options.isMermaid {
            console.write(timeline.mermaid(title: scenario.rawValue))
        } else {
            console.print(report.lines(of: runs, columns: console.columns))
        }
        try files.write(timeline, title: scenario.rawValue)
    }
}
