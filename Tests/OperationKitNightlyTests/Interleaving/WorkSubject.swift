#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A run over a collection, a macro or a waterfall in a run of virtual threads, with units that write down what happens
/// to them.
final class WorkSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable {
        // Parallel batches and sequential items take the same steps as these two.
        case parallelItems, sequentialBatches, ownStrategy, macro, boundMacro, waterfall

        fileprivate var limit: Int { self == .parallelItems ? 2 : 1 }
    }

    private typealias Completion = @Sendable ((any Error)?) -> Void

    private struct Record {
        var begun: [Int] = []
        var inFlight = 0
        var kept: [Int: Completion] = [:]
        /// Held units that may end.
        var released: Set<Int> = []
        var problems: [String] = []
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
    private let units: Int
    private let held: Set<Int>
    private let failing: Set<Int>
    private let record: Shared<Record>
    private let ending: Ending

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - kind: What runs the units.
    ///   - units: How many units there are.
    ///   - held: Which units do not end by themselves.
    ///   - failing: Which units fail.
    init(_ kind: Kind, units: Int, held: Set<Int> = [], failing: Set<Int> = []) {
        let record = Shared(Record())
        self.record = record
        self.kind = kind
        self.units = kind == .ownStrategy ? 1 : units
        self.held = held
        self.failing = failing
        let begin = { @Sendable (unit: Int, completion: @escaping @Sendable ((any Error)?) -> Void) in
            record.change { record in
                record.begun.append(unit)
                record.inFlight += 1
                if record.inFlight > kind.limit { record.problems.append("\(record.inFlight) are in flight") }
            }
            VirtualThread.place("unit")
            let end: Completion = { error in
                record.change { $0.inFlight -= 1 }
                completion(error)
            }
            let isOver = record.change { record in
                if held.contains(unit), !record.released.contains(unit) {
                    record.kept[unit] = end
                    return false
                }
                return true
            }
            if isOver { end(failing.contains(unit) ? TestError.first : nil) }
        }
        operation = WorkSubject.make(kind, units, begin)
        ending = Ending(of: operation, "the run")
    }

    private static func make(
        _ kind: Kind, _ units: Int, _ begin: @escaping @Sendable (Int, @escaping Completion) -> Void
    ) -> AsyncOperation {
        let steps = (0..<units).map { unit in
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
                .makeOperation(on: Array(0..<units))
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
        let perform: @Sendable (@escaping Completion) -> Void
        init(_ perform: @escaping @Sendable (@escaping Completion) -> Void) { self.perform = perform }

        func performOperation(on collection: [Int], completion: @escaping @Sendable ([(any Error)?]) -> Void) {
            perform { completion([$0]) }
        }
    }

    /// Lets a held unit end, now or as soon as it begins.
    func end(_ unit: Int) {
        let completion = record.change { record in
            record.released.insert(unit)
            return record.kept.removeValue(forKey: unit)
        }
        completion?(failing.contains(unit) ? TestError.first : nil)
    }

    func cancel(hasReason: Bool = false) {
        record.change {
            $0.isStopped = true
            $0.isReasonGiven = hasReason
        }
        if hasReason { operation.cancel(withError: TestError.reason) } else { operation.cancel() }
        record.change { $0.begunAtCancel = $0.begun.count }
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
        record.change { if canGoOn, $0.kept.isEmpty { $0.problems.append("the run is forgotten") } }
        operation.start()
        waterfall?.resume()
        for unit in held { end(unit) }
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        let record = record.value
        let begun = record.begun
        var problems = record.problems + ending.problems()
        if Set(begun).count != begun.count { problems.append("begun: \(begun)") }
        if kind.limit == 1, begun != begun.sorted() { problems.append("out of order: \(begun)") }
        if operation.error == nil, begun.count != units { problems.append("success without all units: \(begun)") }
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
        guard let error else { return isStopped || failing.isEmpty }
        switch error {
        case TestError.second, TestError.reason, is CancellationError, CompoundOperationError.cancelled:
            return isStopped
        case let error as CompoundOperationError:
            return !failing.isEmpty && error.leafErrors.contains { $0 is TestError }
        default: return !failing.isEmpty && text(error).contains("first")
        }
    }

    /// Each unit that has begun has its end in its slot, and each other one that it has not.
    private func slotProblems(_ begun: [Int]) -> [String] {
        guard let run = operation as? CollectionRun<Int> else { return [] }
        let expected = (0..<units).map { unit -> String in
            begun.contains(unit) ? text(failing.contains(unit) ? TestError.first : nil) : "cancelled"
        }
        let slots = run.errors.map(text)
        return slots == expected ? [] : ["slots: \(slots), begun: \(begun)"]
    }
}
#endif
