import CommandLineSupport

/// The texts of `--help`, `--list` and `--version`.
enum Usage {
    static let version = "OperationDemo 0.1.0"

    /// Not wider than most terminals.
    private static let columns = 80

    static let line = """
        usage: OperationDemo [SCENARIO] [--mode serial|concurrent|both] [--width N]
                             [--speed X] [--svg FILE] [--trace FILE] [--mermaid]
                             [--log] [--no-color] [--interactive] [--list] [--help]
                             [--version]
        """

    /// A line for each scenario.
    static var list: String { scenarios(columns: .max) }

    private static func scenarios(columns: Int) -> String {
        let width = Scenario.allCases.map(\.synopsis.count).max() ?? 0
        return Scenario.allCases.flatMap { scenario in
            scenario.summary.wrapped(to: columns - width - 4).enumerated().map { number, line in
                "  " + (number == 0 ? scenario.synopsis : "").padded(to: width) + "  " + line
            }
        }
        .joined(separator: "\n")
    }

    static var help: String {
        """
        Shows what operations do, and when: each bar is an operation, in colors by its
        state. On a terminal, bars are drawn while the operations run.

        \(line)

        Scenarios:
        \(scenarios(columns: columns))

        Options:
          --mode MODE    serial, concurrent, or both, one after the other
                         (default: both; concurrent for errors, chain, waterfall, glue,
                         policies, critical-path and files; serial for --interactive)
          --width N      how many operations run at the same time on a concurrent
                         queue, \(Options.widths.lowerBound) to \(Options.widths.upperBound) (default: 4)
          --speed X      run X times as fast, 0.01 to 1000 (default: 1); files always
                         run at full speed
          --svg FILE     draw the timeline into a file, for a browser
          --trace FILE   write the timeline for ui.perfetto.dev or chrome://tracing
          --mermaid      print the timeline as a chart for Markdown, and nothing else
          --log          print what happened line by line, too
          --no-color     no colors; so does a non-empty NO_COLOR, and output that is no
                         terminal
          --interactive  add, choose, cancel and watch operations with the keyboard
          --list         list the scenarios
          --help         print this text
          --version      print the version
          --             what follows is no option, even if it begins with “-”

        Exit status: 0 all went well, 1 some files could not be read, 64 wrong usage, 74
        the output or a file could not be written, 130 interrupted.
        """
    }
}
