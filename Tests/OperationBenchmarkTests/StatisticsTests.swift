import Testing

@testable import OperationBenchmark

@Suite struct StatisticsTests {
    @Test("The median is in the middle") func median() {
        let odd = Statistics([5, 1, 3])
        #expect((odd.min, odd.median, odd.max) == (1, 3, 5))
        #expect(Statistics([4, 1, 3, 100]).median == 3.5)
        #expect(Statistics([7]).median == 7)
    }

    @Test("Ratios are those of the rounds, not that of the medians") func ratios() {
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
        var prepared = 0
        var run = 0
        let side = Side("a", units: units, least: least) {
            prepared += 1
            return {
                run += 1
                return ()
            }
        }
        #expect(try side.measure() > 0)
        #expect(prepared == trials)
        #expect(run == trials)
    }

    @Test("The median ratio decides whether a goal is met") func verdict() {
        let met = Samples.report().cases[0].experiments[0].comparisons
        #expect(met.map(\.verdict) == [.met, .open])
        #expect(Samples.report().meetsGoals)

        // One good round is not enough.
        let report = Samples.report(ours: [10, 2400, 3300])
        #expect(report.cases[0].experiments[0].comparisons[0].verdict == .missed)
        #expect(!report.meetsGoals)

        let ratio = Statistics([0.5])
        #expect(ComparisonResult.Verdict(of: ratio, goal: 0.5) == .met)
    }
}
