import Foundation
import Testing

@testable import OperationBenchmark

/// The cases as they are defined. Nothing is measured here.
@Suite struct CaseTests {
    private static let counts = [1, 2, 9, 50, 1000, 100_000]

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

    @Test("The default sizes grow from a thousand to a million") func defaultSizes() {
        let scale = Scale(count: Options().count)
        #expect(scale.sizes == [1000, 10_000, 100_000, 1_000_000])
        #expect(scale.flatFrom == 10_000)
        #expect(scale.stockChain == 4000)
        #expect(scale.steps == 1000)
    }

    @Test("Sizes grow, and those that are compared are among them", arguments: counts)
    func sizes(count: Int) {
        let scale = Scale(count: count)
        #expect(scale.sizes == scale.sizes.sorted())
        #expect(scale.sizes.allSatisfy { $0 > 0 })
        for size in [scale.flatFrom, scale.count, scale.many] { #expect(scale.sizes.contains(size)) }
    }

    @Test("The guarded loop takes one item after the other", arguments: [false, true])
    func guardedLoop(isAsynchronous: Bool) async {
        final class Log: @unchecked Sendable {
            var items: [Int] = []
        }
        let log = Log()
        // Many enough to overflow the stack, if one item began inside the completion of another.
        let items = Array(0..<(isAsynchronous ? 1000 : 200_000))
        let errors = await withCheckedContinuation { continuation in
            let loop = GuardedLoop(
                items,
                work: { item, completion in
                    log.items.append(item)
                    let error = item.isMultiple(of: 10) ? CocoaError(.userCancelled) : nil
                    if isAsynchronous {
                        DispatchQueue.global().async { completion(error) }
                    } else {
                        completion(error)
                    }
                }, completion: { continuation.resume(returning: $0) })
            Thread { loop.run() }.start()
        }
        #expect(log.items == items)
        #expect(errors.map { $0 != nil } == items.map { $0.isMultiple(of: 10) })
    }
}
