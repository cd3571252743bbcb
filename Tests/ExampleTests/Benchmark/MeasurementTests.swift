import OperationKitTestSupport

@testable import OperationBenchmark

/// How costs are measured, and that the executable does it. What it measures does not matter here.
@Suite(.hangGuard) struct MeasurementTests {
    @Test("Each case has a name of its own, which can be typed, and each side of its comparisons is there once")
    func cases() {
        let names = Case.all.map(\.id)
        #expect(Set(names).count == names.count && names.count > 16)
        #expect(names.allSatisfy { $0.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil }, "\(names)")
        for item in Case.all {
            for experiment in [1, 9, 1_000].flatMap({ item.experiments(Scale(count: $0)) }) {
                let names = experiment.sides.map(\.name)
                #expect(Set(names).count == names.count, "\(item.id): \(names)")
                #expect(!experiment.comparisons.isEmpty)
                let named = experiment.comparisons.flatMap { [$0.ours, $0.baseline] }
                let growing = experiment.growth?.points.map(\.side) ?? []
                #expect((named + growing).allSatisfy(names.contains), "\(item.id)")
            }
        }
    }

    @Test("The median is in the middle, and ratios are those of the rounds, not that of the medians")
    func statistics() {
        let odd = Statistics([5, 1, 3])
        #expect((odd.min, odd.median, odd.max) == (1, 3, 5))
        #expect(Statistics([4, 1, 3, 100]).median == 3.5 && Statistics([7]).median == 7)
        // The machine was slower in the second round, for both alike.
        let ratio = Statistics(ratiosOf: [1, 10, 2], to: [2, 20, 4])
        #expect((ratio.min, ratio.median, ratio.max) == (0.5, 0.5, 0.5))
    }

    @Test("Sides take turns, and swap them in every second round") func turns() throws {
        var turns: [String] = []
        let sides = ["a", "b", "c"].map { name in
            Side(name: name) {
                turns.append(name)
                return Double(turns.count)
            }
        }
        let comparison = Comparison(what: "x", ours: "a", baseline: "c")
        let experiment = Experiment(quantity: .nanoseconds, sides: sides, comparisons: [comparison])
        let result = try Runner(rounds: 5).run(experiment)
        #expect(turns.joined() == "abccbaabccbaabc")
        #expect(result.sides.map(\.name) == ["a", "b", "c"])
        // Turns 1, 6, 7, 12 and 13, to turns 3, 4, 9, 10 and 15.
        #expect(result.sides[0].cost == Statistics([1, 6, 7, 12, 13]))
        #expect(result.comparisons[0].ratio == Statistics(ratiosOf: [1, 6, 7, 12, 13], to: [3, 4, 9, 10, 15]))
    }

    @Test(
        "Small trials are repeated",
        arguments: [(units: 10, least: 0, trials: 1), (10, 100, 10), (10, 9, 1), (7, 100, 14)]
    )
    func smallTrials(units: Int, least: Int, trials: Int) throws {
        var (prepared, run) = (0, 0)
        let side = Side("a", units: units, least: least) {
            prepared += 1
            return {
                run += 1
                return ()
            }
        }
        #expect(try side.measure() > 0 && (prepared, run) == (trials, trials))
    }

    @Test("The median ratio decides whether a goal is met") func verdict() {
        let met = Samples.report().cases[0].experiments[0].comparisons
        #expect(met.map(\.verdict) == [.met, .open] && Samples.report().meetsGoals)
        // One good round is not enough.
        let report = Samples.report(ours: [10, 2400, 3300])
        #expect(report.cases[0].experiments[0].comparisons[0].verdict == .missed && !report.meetsGoals)
        #expect(ComparisonResult.Verdict(of: Statistics([0.5]), goal: 0.5) == .met)
    }

    // MARK: - As a process

    @Test(
        "Output that is lost is told by the exit status",
        arguments: [["--help"], ["--list"], ["--count", "20", "--only", "chain"]], [">&-", ">/dev/full"])
    func lostOutput(arguments: [String], redirection: String) async throws {
        // Every write to this device fails, on Linux.
        guard FileManager.default.fileExists(atPath: "/dev/full") || redirection == ">&-" else { return }
        let result = try await ProductProcess("OperationBenchmark", arguments, redirection: redirection).result()
        #expect(result.status == 3)
        #expect(result.errors.contains("OperationBenchmark: Standard output cannot be written."))
    }

    @Test("All cases are measured, and the status of `--check` says whether a goal was missed")
    func allCases() async throws {
        let folder = TemporaryFolder()
        let file = folder.url.appendingPathComponent("report.json")
        let result = try await ProductProcess.run(
            "OperationBenchmark", "--count=5", "--rounds=6", "--json=\(file.path)", "--markdown", "--check")

        let report = try JSONDecoder().decode(Report.self, from: Data(contentsOf: file))
        #expect(result.status == (report.meetsGoals ? 0 : 1))
        #expect(report.rounds == 6 && report.cases.map(\.id) == Case.all.map(\.id))
        let memory = report.cases.filter { $0.experiments.contains { $0.quantity == .bytes } }
        #expect(memory.map(\.id) == ["memory", "timeouts"])
        #expect(result.lines.dropLast() == Markdown(report: report).lines[...])
    }
}
