/// The texts of `--help` and `--list`.
enum Usage {
    static let line = """
        usage: OperationBenchmark [--only NAME]... [--count N] [--rounds N] [--json FILE] [--markdown] [--check] \
        [--list] [--help]
        """

    static var list: String {
        Case.all.map { item in
            """
            \(item.id)  \(item.summary)
                against \(item.baseline)
                timed: \(item.timed)
            """
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
          --only NAME  measure this case; may be given several times (default: all)
          --count N    children in an ordinary trial; others scale with it, some up to ten times as many
                       (default: \(Options().count))
          --rounds N   how often each side is measured, \(Options.roundCounts.lowerBound) or more (default: \
        \(Options().rounds))
          --json FILE  write the report to a file, too
          --markdown   print the tables of the documentation
          --check      exit with status 1 if a goal is missed; the goals are meant for the default count
          --list       list the cases
          --help       print this text

        Exit status: 0 all went well, 1 a goal was missed (with --check), 2 wrong usage or a file that cannot be
        written, 3 the measurement failed or standard output cannot be written.
        """
    }
}
