import CommandLineSupport
import Foundation

/// The command-line tool as a function from arguments to an exit status.
enum Benchmark {
    static func run(_ arguments: [String]) -> ExitStatus {
        do {
            try Console.requireOutput()
            switch try ArgumentParser.parse(arguments) {
            case .help:
                try Console.print([Usage.help])
            case .list:
                try Console.print([Usage.list])
            case .probe(let probe):
                try Console.write("\(probe.grownBytes())")
            case .run(let options):
                return try measure(options)
            }
            return .success
        } catch let error as UsageError {
            Console.complain("OperationBenchmark: \(error.message)")
            Console.complain(Usage.line)
            return .usage
        } catch {
            Console.complain("OperationBenchmark: \(error.localizedDescription)")
            return .failed
        }
    }

    private static func measure(_ options: Options) throws -> ExitStatus {
        let file = try options.json.map(ReportFile.init(path:))
        let machine = Machine.current
        if machine.configuration == "debug" {
            Console.complain("This is a debug build, whose figures say little: use swift run -c release.")
        }

        let runner = Runner(rounds: options.rounds)
        let cases = try options.cases.map { item in
            CaseResult(
                id: item.id, summary: item.summary, baseline: item.baseline,
                experiments: try item.experiments(Scale(count: options.count)).map { experiment in
                    try runner.run(experiment) { side in Console.progress("\(item.id)  \(side)") }
                })
        }
        Console.progress("")

        let report = Report(machine: machine, rounds: options.rounds, count: options.count, cases: cases)
        // Where one of them is lost, the other one is written all the same.
        let isWritten = Result { try file?.write(report) }
        try Console.print(options.isMarkdown ? Markdown(report: report).lines : Table(report: report).lines)
        try isWritten.get()
        return options.isCheck && !report.meetsGoals ? .goalMissed : .success
    }
}
