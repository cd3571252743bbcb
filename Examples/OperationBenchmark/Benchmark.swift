import Foundation

/// The command-line tool as a function from arguments to an exit status.
enum Benchmark {
    static func run(_ arguments: [String]) -> ExitStatus {
        do {
            switch try ArgumentParser.parse(arguments) {
            case .help:
                Console.print([Usage.help])
            case .list:
                Console.print([Usage.list])
            case .probe(let probe):
                Swift.print(try probe.grownBytes(), terminator: "")
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
        Console.print(options.isMarkdown ? Markdown(report: report).lines : Table(report: report).lines)
        try file?.write(report)
        return options.isCheck && !report.meetsGoals ? .goalMissed : .success
    }
}
