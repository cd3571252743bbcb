import CommandLineSupport
import Foundation

/// How the ratios of a run have changed since an earlier one: a row for each comparison that is in both.
enum Change {
    static let header = ["case", "what", "before", "now", "change"]

    static func lines(from earlier: Report, to report: Report) -> [String] {
        let before = Dictionary(ratios(of: earlier).map { ($0.key, $0.ratio) }, uniquingKeysWith: { first, _ in first })
        let rows = ratios(of: report).compactMap { key, ratio -> [String]? in
            guard let old = before[key] else { return nil }
            let change = (ratio.median / old.median - 1) * 100
            // What lies within the spread of either run may be chance.
            let isWithinSpread = ratio.min <= old.max && old.min <= ratio.max
            return [
                key[0], key[1], Figures.ratio(old.median), Figures.ratio(ratio.median),
                String(format: "%+.0f %%", change) + (isWithinSpread ? ", within the spread" : ""),
            ]
        }
        let place = earlier.machine == report.machine ? "" : " on another machine: \(earlier.machine.description)"
        return ["", "Compared with an earlier run\(place)"] + Table.aligned([header] + rows, figures: 2..<4)
    }

    private static func ratios(of report: Report) -> [(key: [String], ratio: Statistics)] {
        report.cases.flatMap { result in
            result.experiments.flatMap(\.comparisons).map { ([result.id, $0.what], $0.ratio) }
        }
    }
}
