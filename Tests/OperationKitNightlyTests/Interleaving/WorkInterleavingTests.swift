#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over collections, macros and waterfalls whose workers and private queues are virtual threads, and those who do
/// something to them, in many orders of their steps.
@Suite("Interleavings of runs", .serialized, .takesTurns, .hangGuard) struct WorkInterleavingTests {
    private typealias Subject = WorkSubject

    private static let start = Role<Subject>("start") { $0.operation.start() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let finish = Role<Subject>("finish") { $0.finishFromOutside() }
    private static let reason = Role<Subject>("reason") { $0.cancel(hasReason: true) }
    private static let end = Role<Subject>("end") { $0.end(0) }
    private static let endSecond = Role<Subject>("end the second") { $0.end(1) }
    private static let pause = Role<Subject>("pause") { ($0.operation as? Waterfall<Int, Int>)?.suspend() }
    private static let resume = Role<Subject>("resume") { ($0.operation as? Waterfall<Int, Int>)?.resume() }

    private static func scenes(of kind: Subject.Kind) -> [Scene<Subject>] {
        [
            Scene("\(kind), cancelled while it is started: no further unit starts", [start, cancel]) {
                Subject(kind, units: 3)
            },
            Scene("\(kind), finished while it is started: it ends with that outcome, if accepted", [start, finish]) {
                Subject(kind, units: 2, held: [0])
            },
            Scene("\(kind), cancelled with a reason while a unit ends", [start, end, reason]) {
                Subject(kind, units: 2, held: [0])
            },
            Scene("\(kind), cancelled while a unit ends: no further one starts", [start, end, cancel]) {
                Subject(kind, units: 3, held: [0])
            },
            Scene("\(kind), with units that end at the same time: it goes on through all", [start, end, endSecond]) {
                Subject(kind, units: 3, held: [0, 1])
            },
            Scene("\(kind), a unit fails while another one ends: no failure is lost", [start, end, endSecond]) {
                Subject(kind, units: 2, held: [0, 1], failing: [0])
            },
        ]
    }

    private static let suspension = Scene<Subject>(
        "A waterfall that is suspended and resumed while it is started runs all its jobs", [start, pause, resume]
    ) { Subject(.waterfall, units: 2) }

    @Test(
        "A run ends once, with the right outcome, after all units that may start",
        arguments: Subject.Kind.allCases.flatMap(scenes) + [suspension])
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (100, 50)) }
}

/// A run over a collection, a macro or a waterfall in a run of virtual threads, with units that write down what happens
/// to them.
private final class WorkSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable {
        // Parallel batches and sequential items take the same steps as these two.
        case parallelItems, sequentialBatches, ownStrategy, macro, boundMacro, waterfall

        fileprivate var limit: Int { self == .parallelItems ? 2 : 1 }
    }

    private struct Record {
        /// Whether a virtual thread has finished or cancelled the run.
        var isStopped = false
        /// Whether it is cancelled with a reason only.
        var isReasonGiven = false
        /// Whether the outcome that was given to it was accepted.
        var isGiven = false
        /// How many units had begun when a cancellation was complete.
        var begunAtCancel: Int?
    }

    let operation: AsyncOperation
    let kind: Kind
    private let count: Int
    private let units: WorkUnits
    private let record = Shared(Record())
    private let ending: Ending

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - kind: What runs the units.
    ///   - count: How many units there are.
    ///   - held: Which units do not end by themselves.
    ///   - failing: Which units fail.
    init(_ kind: Kind, units count: Int, held: Set<Int> = [], failing: Set<Int> = []) {
        self.kind = kind
        self.count = kind == .ownStrategy ? 1 : count
        units = WorkUnits(limit: kind.limit, held: held, failing: failing)
        operation = WorkSubject.make(kind, self.count) { [units] in units.begin($0, $1) }
        ending = Ending(of: operation, "the run")
    }

    private static func make(
        _ kind: Kind, _ count: Int, _ begin: @escaping @Sendable (Int, @escaping WorkUnits.Completion) -> Void
    ) -> AsyncOperation {
        let steps = (0..<count).map { unit in
            Step<Int, Int>("\(unit)") { step, input in
                begin(unit) { error in
                    if let error { step.finish(withError: error) } else { step.finish(with: input) }
                }
            }
        }
        switch kind {
        case .parallelItems, .sequentialBatches:
            let strategy = kind == .parallelItems ? Strategy.parallelItems : .sequentialBatches
            return strategy.make(limit: kind.limit) { items, completion in begin(items[0], completion) }
                .makeOperation(on: Array(0..<count))
        case .ownStrategy:
            return OwnStrategy { begin(0, $0) }.makeOperation(on: [0])
        case .boundMacro:
            let macro = chain(of: steps).with(input: 0)
            for (step, source) in zip(steps.dropFirst(), steps) {
                step.bind(to: source) { step, source in
                    if !source.isFinished { step.finish(withError: TestError.numbered(0)) }
                }
            }
            for (step, source) in zip(steps.dropFirst(2), steps) { step.requireSuccess(of: source) }
            return macro
        case .macro:
            return chain(of: steps).with(input: 0)
        case .waterfall:
            return steps.reduce(Waterfall<Int, Int>()) { $0.thenRun { [step = $1] in step.with(input: $0) } }.with(
                input: 0)
        }
    }

    private final class OwnStrategy: CollectionOperation {
        let perform: @Sendable (@escaping WorkUnits.Completion) -> Void
        init(_ perform: @escaping @Sendable (@escaping WorkUnits.Completion) -> Void) { self.perform = perform }

        func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {
            perform { completion([$0]) }
        }
    }

    func end(_ unit: Int) { units.end(unit) }

    func cancel(hasReason: Bool = false) {
        record.change {
            $0.isStopped = true
            $0.isReasonGiven = hasReason
        }
        if hasReason { operation.cancel(withError: TestError.reason) } else { operation.cancel() }
        let begun = units.state.value.begun.count
        record.change { $0.begunAtCancel = begun }
    }

    func finishFromOutside() {
        record.change { $0.isStopped = true }
        let isAccepted = operation.finish(withError: TestError.second)
        record.change { $0.isGiven = isAccepted }
    }

    /// Ends whatever is left open, once no thread can go on by himself.
    func endAll() {
        let waterfall = operation as? Waterfall<Int, Int>
        let canGoOn = VirtualThread.inOneStep { operation.isExecuting && waterfall?.isSuspended != true }
        units.state.change { if canGoOn, $0.kept.isEmpty { $0.problems.append("the run is forgotten") } }
        operation.start()
        waterfall?.resume()
        units.endAll()
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        let record = record.value
        let begun = units.state.value.begun
        var problems = units.state.value.problems + ending.problems()
        if Set(begun).count != begun.count { problems.append("begun: \(begun)") }
        if kind.limit == 1, begun != begun.sorted() { problems.append("out of order: \(begun)") }
        if operation.error == nil, begun.count != count { problems.append("success without all units: \(begun)") }
        if !isExpected(operation.error, isStopped: record.isStopped) { problems.append(text(operation.error)) }
        if operation.isCancelled, record.isReasonGiven, operation.error?.isCancellation == true {
            problems.append("the reason is lost: \(text(operation.error))")
        }
        if record.isGiven != (text(operation.error) == "second") { problems.append("ended with another outcome") }
        // Those that had been chosen then may still begin.
        if let most = record.begunAtCancel, begun.count > most + kind.limit { problems.append("begun late: \(begun)") }
        return problems + slotProblems(begun)
    }

    /// A failure is not lost unless the run was stopped, and nothing but what the test has done makes one.
    private func isExpected(_ error: (any Error)?, isStopped: Bool) -> Bool {
        guard let error else { return isStopped || units.failing.isEmpty }
        switch error {
        case TestError.second, TestError.reason, is CancellationError, CompoundOperationError.cancelled:
            return isStopped
        case let error as CompoundOperationError:
            return !units.failing.isEmpty && error.leafErrors.contains { $0 is TestError }
        default: return !units.failing.isEmpty && text(error).contains("first")
        }
    }

    /// Each unit that has begun has its end in its slot, and each other one that it has not.
    private func slotProblems(_ begun: [Int]) -> [String] {
        guard let run = operation as? CollectionRun<Int> else { return [] }
        let expected = (0..<count).map { unit -> String in
            begun.contains(unit) ? text(units.failing.contains(unit) ? TestError.first : nil) : "cancelled"
        }
        let slots = run.errors.map(text)
        return slots == expected ? [] : ["slots: \(slots), begun: \(begun)"]
    }
}

/// Units of work in a run of virtual threads, which write down what happens to them, and of which some end only when the
/// test lets them.
final class WorkUnits: Sendable {
    typealias Completion = @Sendable ((any Error)?) -> Void

    struct State {
        var begun: [Int] = []
        var inFlight: Set<Int> = []
        var kept: [Int: Completion] = [:]
        /// Held units that may end, or lose their completions.
        var released: Set<Int> = []
        var problems: [String] = []
    }

    let state = Shared(State())
    let held, failing: Set<Int>
    private let limit: Int

    /// With so many units in flight, and these that do not end by themselves, or fail.
    init(limit: Int, held: Set<Int>, failing: Set<Int>) {
        (self.limit, self.held, self.failing) = (limit, held, failing)
    }

    /// A unit begins, and ends unless it is held.
    func begin(_ unit: Int, _ completion: @escaping Completion) {
        state.change { state in
            state.begun.append(unit)
            state.inFlight.insert(unit)
            if state.inFlight.count > limit { state.problems.append("\(state.inFlight.count) are in flight") }
        }
        VirtualThread.place("unit")
        let end: Completion = { [state, failing] error in
            state.change { _ = $0.inFlight.remove(unit) }
            completion(failing.contains(unit) ? TestError.first : error)
        }
        let isOver = state.change { state in
            if held.contains(unit), !state.released.contains(unit) { state.kept[unit] = end }
            return state.kept[unit] == nil
        }
        if isOver { end(nil) }
    }

    /// Returns the completion of a held unit, if it has begun. If it begins later, it ends by itself.
    func release(_ unit: Int) -> Completion? {
        state.change { state in
            state.released.insert(unit)
            return state.kept.removeValue(forKey: unit)
        }
    }

    /// Lets a held unit end, now or as soon as it begins.
    func end(_ unit: Int) { release(unit)?(nil) }

    func endAll() { for unit in held { end(unit) } }
}
#endif
