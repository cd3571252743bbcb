import Foundation
import Testing

@testable import OperationBenchmark

/// The cases as they are defined. Nothing is measured here.
@Suite struct CaseTests {
    private static let counts = [1, 9, 1_000]

    @Test("Each case has a name of its own, which can be typed") func namesOfCases() {
        let names = Case.all.map(\.id)
        #expect(Set(names).count == names.count && names.count > 16)
        #expect(names.allSatisfy { $0.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil }, "\(names)")
    }

    @Test("Comparisons and growths name sides that are there once", arguments: counts)
    func sides(count: Int) {
        for item in Case.all {
            for experiment in item.experiments(Scale(count: count)) {
                let names = experiment.sides.map(\.name)
                #expect(Set(names).count == names.count, "\(item.id): \(names)")
                #expect(!experiment.comparisons.isEmpty)
                for comparison in experiment.comparisons {
                    #expect(names.contains(comparison.ours), "\(item.id): \(comparison.what)")
                    #expect(names.contains(comparison.baseline), "\(item.id): \(comparison.what)")
                }
                for point in experiment.growth?.points ?? [] {
                    #expect(names.contains(point.side), "\(item.id): \(point.size)")
                }
            }
        }
    }
}
