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
            case .instructions(let options):
                try countInstructions(options)
            case .instructionProbe(let probe):
                probe.run()
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
        // Read first: it may be the file that is written.
        let earlier = try options.compared.map(Report.init(readFrom:))
        let file = try options.json.map(ReportFile.init(path:))
        let machine = currentMachine()
        let load = Machine.currentLoad
        let runner = Runner(rounds: options.rounds)
        let cases = try options.cases.map { item in
            CaseResult(
                id: item.id, summary: item.summary, baseline: item.baseline,
                experiments: try item.experiments(Scale(count: options.count)).map { experiment in
                    try runner.run(experiment) { side in Console.progress("\(item.id)  \(side)") }
                })
        }
        Console.progress("")

        let report = Report(
            machine: machine, load: load, rounds: options.rounds, count: options.count, cases: cases)
        // Where one of them is lost, the other one is written all the same.
        let isWritten = Result { try file?.write(report) }
        try Console.print(options.isMarkdown ? Markdown(report: report).lines : Table(report: report).lines)
        if let earlier { try Console.print(Change.lines(from: earlier, to: report)) }
        try isWritten.get()
        return options.isCheck && !report.meetsGoals ? .goalMissed : .success
    }

    private static func countInstructions(_ options: InstructionOptions) throws {
        let environment = ProcessInfo.processInfo.environment
        let counter = try InstructionCounter.first(searching: environment["PATH"] ?? "")
        let machine = currentMachine()
        let executable = Bundle.main.executablePath ?? CommandLine.arguments[0]
        let meter = InstructionMeter(rounds: options.rounds) { probe in
            try counter.count([executable] + probe.arguments)
        }
        let results = try meter.results(of: options.cases, willCount: Console.progress)
        Console.progress("")
        let report = InstructionReport(
            machine: machine, tool: counter.tool, rounds: options.rounds, results: results)
        try Console.print(options.isMarkdown ? report.markdown : report.table)
    }

    /// The machine. If the build isn't optimized, a line on standard error says so.
    private static func currentMachine() -> Machine {
        let machine = Machine.current
        if machine.configuration == "debug" {
            Console.complain("This is a debug build, whose figures say little: use swift run -c release.")
        }
        return machine
    }
}
