#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// What came out of trying the orders in which virtual threads can move.
struct Exploration {
    /// How many runs there were.
    var count = 0
    /// The first run with something wrong in it.
    var failure: (problems: [String], trace: String)?
}

/// What one virtual thread does with the subject of a run.
struct Role<Subject>: Sendable {
    let name: String
    let body: @Sendable (Subject) -> Void

    init(_ name: String, _ body: @escaping @Sendable (Subject) -> Void) {
        self.name = name
        self.body = body
    }
}

/// Runs virtual threads in one order after the other, until all are tried or something is wrong in one.
///
/// - Parameters:
///   - extent: Which orders to try.
///   - grain: The size of a step.
///   - prepare: Makes the subject of a run.
///   - roles: What the virtual threads do.
///   - check: Returns what is wrong with the subject once all virtual threads have ended.
/// - Returns: The number of runs, and the first one with something wrong in it.
func explore<Subject>(
    _ extent: Choices.Extent, grain: Interleaving.Grain = .regions,
    prepare: @escaping @Sendable (Interleaving) -> Subject,
    _ roles: [Role<Subject>],
    check: @escaping @Sendable (Subject, Interleaving) -> [String]
) async -> Exploration {
    await onThread {
        var choices = Choices(extent)
        var exploration = Exploration()
        repeat {
            let interleaving = Interleaving(choices, grain: grain)
            var problems: [String]
            (choices, problems) = runOnce(interleaving, prepare: prepare, roles, check: check)
            exploration.count += 1
            if problems.isEmpty { problems = interleaving.leftBehind() }
            if !problems.isEmpty { exploration.failure = (problems, interleaving.trace) }
        } while exploration.failure == nil && choices.advance()
        return exploration
    }
}

/// - Returns: The choices of the run, and what was wrong in it. The subject is gone then, unless something holds it.
private func runOnce<Subject>(
    _ interleaving: Interleaving, prepare: (Interleaving) -> Subject, _ roles: [Role<Subject>],
    check: (Subject, Interleaving) -> [String]
) -> (choices: Choices, problems: [String]) {
    let subject = interleaving.prepare { prepare(interleaving) }
    for role in roles { interleaving.add(role.name) { role.body(subject) } }
    let (choices, problems) = interleaving.run()
    return (choices, problems.isEmpty ? check(subject, interleaving) : problems)
}

/// A subject that can bring a run to its end by itself, and tell what was wrong in it.
protocol ExplorationSubject: Sendable {
    /// Ends what the test holds back, once no virtual thread can go on.
    func endHeld()
    /// Ends whatever is left open, once no virtual thread can go on even so.
    func endAll()
    /// What is wrong after everything is over.
    func problems() -> [String]
}

extension ExplorationSubject {
    func endHeld() {}
}

/// Watches the end of an operation in a run.
final class Ending: Sendable {
    private let operation: AsyncOperation
    private let record = Shared((completions: [String](), problems: [String]()))

    /// Expects that an operation ends once, tells of that before it is finished, and is freed after the run.
    ///
    /// - Parameters:
    ///   - operation: An operation without an `asyncCompletionBlock`.
    ///   - label: What it is called.
    ///   - look: Returns what is wrong when the end is told.
    init(
        of operation: AsyncOperation, _ label: String = "the operation",
        look: @escaping @Sendable () -> [String] = { [] }
    ) {
        self.operation = operation
        VirtualThread.expectRelease(of: operation, label)
        operation.asyncCompletionBlock = { [unowned operation, record] error in
            VirtualThread.place("completion")
            let (isFinished, outcome, found) = VirtualThread.inOneStep { (operation.isFinished, text(error), look()) }
            record.change {
                $0.completions.append(outcome)
                $0.problems += found + (isFinished ? ["completed after isFinished"] : [])
            }
        }
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        let (completions, problems) = record.value
        let outcome = text(operation.error)
        return problems + (operation.isFinished ? [] : ["not finished: \(operation.debugDescription)"])
            + (completions == [outcome] ? [] : ["error reads \(outcome), completions: \(completions)"])
    }
}

/// What virtual threads do to a subject.
struct Scene<Subject: ExplorationSubject>: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let roles: [Role<Subject>]
    let make: @Sendable () -> Subject

    init(_ title: String, _ roles: [Role<Subject>], _ make: @escaping @Sendable () -> Subject) {
        (testDescription, self.roles, self.make) = (title, roles, make)
    }

    /// Expects that nothing is wrong in all orders with at most one preemption, or a sample of them in the short extent of
    /// a test run, and in others at random.
    ///
    /// - Parameters:
    ///   - limit: How many orders with at most one preemption are tried, at random, where all of them are too many.
    ///   - samples: How many other orders are tried at random, and how many in the smallest steps.
    ///   - location: Where a failure is reported.
    func expectNoProblems(
        atMost limit: Int = .max, samples: (regions: Int, everyPlace: Int),
        _ location: SourceLocation = #_sourceLocation
    ) async {
        let seed = Choices.seed()
        let first = limit == .max ? Choices.Extent.preemptions(1) : .samples(limit, seed: seed, preemptions: 1)
        await expectNoProblems(
            in: [
                (first, .regions), (.samples(samples.regions, seed: seed), .regions),
                (.samples(samples.everyPlace, seed: seed), .everyPlace),
            ], seed: seed, location)
    }

    /// Expects that nothing is wrong in any of some orders, or a sample of them in the short extent of a test run.
    func expectNoProblems(
        in extents: [(Choices.Extent, Interleaving.Grain)], seed: UInt64 = Choices.seed(),
        _ location: SourceLocation = #_sourceLocation
    ) async {
        let make = make
        for (extent, grain) in extents {
            let extent = extent.bounded(seed: seed)
            let exploration = await explore(
                extent, grain: grain,
                prepare: { interleaving in
                    let subject = make()
                    interleaving.add("last", .last) {
                        subject.endHeld()
                        interleaving.add("very last", .last) { subject.endAll() }
                    }
                    return subject
                },
                roles, check: { subject, _ in subject.problems() })
            #expect(
                exploration.failure == nil, "\(testDescription), run \(exploration.count) of \(extent), seed \(seed)",
                sourceLocation: location)
            TestExtent.report("Interleavings, \(testDescription): \(exploration.count) of \(extent)")
        }
    }
}
#endif
