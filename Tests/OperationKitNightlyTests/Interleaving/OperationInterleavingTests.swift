#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation, and two or three threads that do something to it, in many orders of their steps. In the long extent of a
/// test run these are all orders of two short steps, and a bounded number of the others; in the short one a sample.
@Suite("Interleavings of single operations", .serialized, .takesTurns, .hangGuard) struct OperationInterleavingTests {
    private enum Beginning: CaseIterable { case pending, executing, mainFinishes }

    /// Pairs of different steps, and each step twice.
    private static let pairs = OperationStep.allCases.enumerated().flatMap { index, first in
        OperationStep.allCases[index...].map { (first, $0) }
    }

    /// - Returns: How many orders were tried.
    private func tryOut(
        _ steps: [OperationStep], _ beginning: Beginning, _ extent: Choices.Extent, _ grain: Interleaving.Grain
    ) async -> Int {
        let extent = extent.bounded(seed: Choices.seed())
        let exploration = await explore(
            extent, grain: grain,
            prepare: { interleaving in
                let subject = StepSubject(interleaving, main: { if beginning == .mainFinishes { $0.end(.second) } })
                if beginning == .executing { subject.operation.start() }
                // Whatever is left open is ended at last, so that no task waits in vain.
                interleaving.add("last", .last) {
                    subject.operation.start()
                    subject.operation.end(nil)
                }
                return subject
            },
            steps.map { step in Role(step.rawValue) { step($0) } },
            check: { subject, _ in subject.problems() })
        #expect(exploration.failure == nil, "\(steps), \(beginning), run \(exploration.count) of \(extent)")
        return exploration.count
    }

    private func report(_ title: String, _ counts: [Int]) {
        TestExtent.report(
            "Interleavings, \(title): \(counts.reduce(0, +)) in \(counts.count) explorations, up to \(counts.max() ?? 0)"
        )
    }

    @Test(
        "An operation on which two threads act at the same time ends once and wakes those that wait for it",
        arguments: Beginning.allCases
    )
    private func everyPair(beginning: Beginning) async {
        var counts: [Int] = []
        for (first, second) in OperationInterleavingTests.pairs where !(first.isLong && second.isLong) {
            let isShort = second != .awaitAndGiveUp && (beginning != .mainFinishes || first != .start || !second.isLong)
            counts.append(await tryOut([first, second], beginning, isShort ? .everything : .preemptions(3), .regions))
        }
        report("two steps, \(beginning), all, at most three preemptions where a wait is long", counts)
    }

    @Test(
        "Two steps that interrupt each other anywhere call nothing with a lock held, and the operation ends once",
        arguments: Beginning.allCases
    )
    private func everyPairInSmallSteps(beginning: Beginning) async {
        var counts: [Int] = []
        for (first, second) in OperationInterleavingTests.pairs {
            counts.append(await tryOut([first, second], beginning, .preemptions(2), .everyPlace))
        }
        report("two steps in small steps, \(beginning), at most two preemptions", counts)
    }

    @Test(
        "In many orders of three steps an operation ends once and wakes those that wait for it",
        arguments: Beginning.allCases
    )
    private func everyThree(beginning: Beginning) async {
        let steps: [OperationStep] = [.start, .succeed, .fail, .cancel, .cancelWithReason, .wait, .await]
        let seed = Choices.seed()
        var bounded: [Int] = []
        var sampled: [Int] = []
        for (index, first) in steps.enumerated() {
            for second in index..<steps.count {
                for third in steps[second...] {
                    let three = [first, steps[second], third]
                    if three.count(where: \.isLong) > 1 { continue }
                    let onePreemption = TestExtent.choose(
                        Choices.Extent.samples(2, seed: seed, preemptions: 1), long: .preemptions(1))
                    let samples = Choices.Extent.samples(TestExtent.choose(2, long: 20), seed: seed)
                    bounded.append(await tryOut(three, beginning, onePreemption, .regions))
                    sampled.append(await tryOut(three, beginning, samples, .everyPlace))
                }
            }
        }
        report("three steps, \(beginning), at most one preemption", bounded)
        report("three steps in small steps, \(beginning), seed \(seed)", sampled)
    }
}
#endif
