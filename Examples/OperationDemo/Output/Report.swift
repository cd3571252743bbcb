import CommandLineSupport
import OperationKit
import OperationKitTimelines

/// A part of a scenario that has run: what happened, and what is to be said about it.
struct Run: Sendable {
    let section: Section
    let timeline: OperationTimeline
    let notes: [Recording.Note]
    let findings: [String]
}

/// What a scenario prints.
struct Report {
    let scenario: Scenario
    let style: Style
    let showsLog: Bool

    /// What is printed first: what the scenario is, and what to look at.
    func header(columns: Int) -> [String] {
        "\(scenario.rawValue): \(scenario.summary)".wrapped(to: columns).map(style.bold)
            + scenario.hint.wrapped(to: columns) + [""]
    }

    /// All runs on one scale, so that bars of the same length took the same time.
    func lines(of runs: [Run], columns: Int) -> [String] {
        let end = runs.map(\.timeline.duration).max() ?? .zero
        var lines: [String] = []
        for run in runs {
            lines += [style.bold("\(scenario.rawValue), \(run.section.title)"), ""]
            if showsLog { lines += TimelineLog(run.timeline, notes: run.notes).text(style: style) + [""] }
            lines += drawing(of: run.timeline, columns: columns, rows: scenario.maximumRows, end: end) + [""]
            if !run.findings.isEmpty { lines += run.findings.flatMap { $0.wrapped(to: columns) } + [""] }
        }
        lines += (conclusion(of: runs) + [scenario.lesson].compactMap(\.self)).flatMap { $0.wrapped(to: columns) }
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    /// What is seen while a run goes on: as many runs as there is room for, the current one in any case.
    func frame(_ earlier: [Run], _ section: Section, _ timeline: OperationTimeline, columns: Int, rows: Int) -> [String]
    {
        let longest = earlier.map(\.timeline.duration).max() ?? .zero
        let end = max(longest, timeline.duration > longest ? timeline.duration.roundTime : .zero)
        // The title, the axis, the legend, and a line that says how many others there are.
        let others = 6
        let current =
            [style.bold("\(scenario.rawValue), \(section.title)")]
            + drawing(of: timeline, columns: columns, rows: max(1, min(scenario.maximumRows, rows - others)), end: end)
        guard let last = earlier.last else { return current }
        let before =
            [style.bold("\(scenario.rawValue), \(last.section.title)")]
            + drawing(of: last.timeline, columns: columns, rows: scenario.maximumRows, end: end) + [""]
        return before.count + current.count <= rows ? before + current : current
    }

    private func drawing(of timeline: OperationTimeline, columns: Int, rows: Int, end: Duration) -> [String] {
        timeline.text(columns: columns, maximumRows: rows, colors: style.isColored, end: end)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Says what came of more operations at the same time, if that is what the runs differ in, and if it is true.
    private func conclusion(of runs: [Run]) -> [String] {
        guard scenario.comparesRuns, runs.count == 2, runs[1].section.limit > 1 else { return [] }
        let (serial, concurrent) = (runs[0].timeline.duration, runs[1].timeline.duration)
        // Below that, it is chance.
        guard concurrent < serial * 0.9 else { return [] }
        return [
            "The same work took \(serial.milliseconds) ms on the serial queue, "
                + "\(concurrent.milliseconds) ms on the concurrent one."
        ]
    }
}

extension Duration {
    /// A round duration that is not shorter, so that the scale of a drawing changes seldom.
    var roundTime: Duration {
        var unit = Duration.milliseconds(100)
        while true {
            for factor in [1, 2, 3, 4, 6, 8] where unit * factor >= self { return unit * factor }
            unit *= 10
        }
    }
}
