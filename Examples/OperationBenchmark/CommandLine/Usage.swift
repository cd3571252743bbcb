import CommandLineSupport

/// The texts of `--help` and `--list`.
enum Usage {
    static let line = """
        usage: OperationBenchmark [--only NAME]... [--count N] [--rounds N] [--json FILE] [--compare FILE] \
        [--markdown] [--check] [--list] [--help] | --instructions [--only NAME]... [--rounds N] [--markdown]
        """

    static var list: String {
        Case.all.map { item in
            """
            \(item.id)  \(item.summary)
                against \(item.baseline)
                timed: \(item.timed)
            """
        }.joined(separator: "\n") + "\n\nWith --instructions:\n" + instructionList
    }

    private static var instructionList: String {
        let width = InstructionCase.all.map(\.id.count).max() ?? 0
        return InstructionCase.all.map { item in
            let baseline = item.baseline.map { ", against \($0)" } ?? ""
            return "  \(item.id.padded(to: width))  \(item.summary)\(baseline)"
        }.joined(separator: "\n")
    }

    static var help: String {
        """
        Measures what operations cost, each case against its baseline in the same run: both sides take turns, and the
        median and the spread of all rounds are shown. Build it with optimization: swift run -c release \
        OperationBenchmark

        \(line)

        Cases:
        \(list)

        Options:
          --only NAME     measure this case; may be given several times (default: all)
          --count N       children in an ordinary trial; others scale with it, some up to ten times as many
                          (default: \(Options().count))
          --rounds N      how often each side is measured, \(Options.roundCounts.lowerBound) or more (default: \
        \(Options().rounds))
          --json FILE     write the report to a file, too
          --compare FILE  show how the ratios have changed since an earlier run with --json
          --markdown      print the tables of the documentation
          --check         exit with status 1 if a goal is missed; the goals are meant for the default count
          --instructions  count the instructions of an operation instead, in cases of their own. They do not depend
                          on what else the machine does. The count is that of perf, where the processor lets it, or
                          else that of valgrind. It differs from run to run where threads meet; of such cases, the
                          least of all rounds is shown
          --list          list the cases
          --help          print this text

        Exit status: 0 all went well, 1 a goal was missed (with --check), 2 wrong usage or a file that cannot be
        written, 3 the measurement failed or standard output cannot be written.
        """
    }
}
