#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Runs over sequences whose workers are virtual threads, and those who do something to them, in many orders of their
/// steps.
@Suite("Interleavings of runs over sequences", .serialized, .takesTurns, .hangGuard)
struct SequenceInterleavingTests {
    private typealias Subject = SequenceSubject

    private static let start = Role<Subject>("start") { $0.start() }
    private static let cancel = Role<Subject>("cancel") { $0.cancel() }
    private static let lose = Role<Subject>("lose") { $0.lose(0) }
    private static let end = Role<Subject>("end") { $0.end(0) }
    private static let endSecond = Role<Subject>("end the second") { $0.end(1) }

    private static func scenes(limit: Int) -> [Scene<Subject>] {
        [
            Scene("Limit \(limit), cancelled: nothing is taken after that", [start, cancel]) {
                Subject(count: 3, limit: limit)
            },
            Scene("Limit \(limit), cancelled while an item ends", [start, end, cancel]) {
                Subject(count: 3, limit: limit, held: [0])
            },
            Scene("Limit \(limit), cancelled while a completion is lost", [start, lose, cancel]) {
                Subject(count: 2, limit: limit, held: [0])
            },
        ]
            + [FailurePolicy.continueAll, .cancelRemaining].map { policy in
                Scene(
                    "Limit \(limit), \(policy): a failure beside another end is delivered before the end",
                    [start, end, endSecond]
                ) { Subject(count: 3, limit: limit, held: [0, 1], failing: [0], policy: policy) }
            }
    }

    private static let ends = (1...3).map { limit in
        Scene("Limit \(limit), with items that end while others are read: it goes on", [start, end, endSecond]) {
            Subject(count: 4, limit: limit, held: [0, 1])
        }
    }

    private static let cancelledRead = Scene(
        "An item that is not performed, because reading it cancels the run, is released before the end", [start, end]
    ) { Subject(count: 3, limit: 2, held: [0], last: 1) }

    @Test(
        "A run over a sequence ends once, and nothing is taken, delivered or kept after that",
        arguments: (1...2).flatMap(scenes) + ends + [cancelledRead])
    private func everyScene(scene: Scene<Subject>) async { await scene.expectNoProblems(samples: (100, 50)) }
}

/// A run over a sequence in a run of virtual threads, which writes down what is read, performed and delivered.
private final class SequenceSubject: ExplorationSubject, @unchecked Sendable {
    private struct Record {
        /// How many items have not been released.
        var alive = 0
        var isReading = false
        var isAtEnd = false
        var failures: [Int: String] = [:]
        /// Virtual threads that call a completion.
        var reporting: Set<ObjectIdentifier?> = []
        var isCancelled = false
        /// How many items had been asked for when the cancellation was complete.
        var askedAtCancel: Int?
        var asked = 0
        /// What performs the items.
        weak var object: AnyObject?
        /// Whether the run was cancelled, of each of its ends.
        var ends: [Bool] = []
        var problems: [String] = []
    }

    /// An item that is counted until it is released.
    private final class Item: Sendable {
        let index: Int
        private let record: Shared<Record>

        init(_ index: Int, _ limit: Int, _ record: Shared<Record>) {
            (self.index, self.record) = (index, record)
            record.change { record in
                record.alive += 1
                if record.alive > limit { record.problems.append("\(record.alive) items at a time") }
            }
        }

        deinit {
            VirtualThread.place("is released")
            record.change { $0.alive -= 1 }
        }
    }

    private let driver: CollectionDriver
    private let count: Int
    private let units: WorkUnits
    private let policy: FailurePolicy
    private let record = Shared(Record())

    /// Creates a run that has not started.
    ///
    /// - Parameters:
    ///   - count: How many items there are.
    ///   - limit: How many may be in flight.
    ///   - held: Which items do not end by themselves.
    ///   - failing: Which items fail.
    ///   - last: The item that cancels the run when it is read.
    ///   - policy: What a failure means.
    init(
        count: Int, limit: Int, held: Set<Int> = [], failing: Set<Int> = [], last: Int? = nil,
        policy: FailurePolicy = .continueAll
    ) {
        let units = WorkUnits(limit: limit, held: held, failing: failing)
        (self.count, self.units, self.policy) = (count, units, policy)
        let operation = ParallelItems(limit, 1, policy) { [record] items, completion in
            if !record.value.ends.isEmpty { record.change { $0.problems.append("\(items) began after the end") } }
            units.begin(items[0]) { error in
                let thread = VirtualThread.current.map { ObjectIdentifier($0) }
                record.change { _ = $0.reporting.insert(thread) }
                completion(error)
                record.change { _ = $0.reporting.remove(thread) }
            }
        }
        record.change { $0.object = operation }
        let cancel = Shared<(@Sendable () -> Void)?>(nil)
        VirtualThread.expectRelease(of: operation, "the object")
        let read: @Sendable (Int) -> Item? = { [record] index in
            record.change { record in
                if record.isReading { record.problems.append("two threads read") }
                record.isReading = true
                record.asked += 1
            }
            VirtualThread.place("reads")
            if index == last { cancel.value?() }
            record.change { ($0.isReading, $0.isAtEnd) = (false, index >= count) }
            return index < count ? Item(index, limit, record) : nil
        }
        let failed: @Sendable (CollectionFailure<Item>) -> Void = { [record] failure in
            VirtualThread.place("receives a failure")
            let thread = VirtualThread.current.map { ObjectIdentifier($0) }
            record.change { record in
                if record.reporting.contains(thread) { record.problems.append("delivered inside a completion") }
                if !record.ends.isEmpty { record.problems.append("delivered after the end") }
                record.failures[failure.index] = text(failure.error)
            }
        }
        driver = SequenceSubject.driver(of: operation, read, failed)
        VirtualThread.expectRelease(of: driver, "the driver")
        cancel.value = { [weak self] in self?.cancel() }
    }

    private static func driver(
        of operation: ParallelItems, _ read: @escaping @Sendable (Int) -> Item?,
        _ failed: @escaping @Sendable (CollectionFailure<Item>) -> Void
    ) -> CollectionDriver {
        guard let strategy = try? CollectionStrategy(of: operation), case .completion(let perform) = strategy.method
        else { preconditionFailure("The options are wrong.") }
        var index = 0
        let iterator = AnyIterator {
            defer { index += 1 }
            return read(index)
        }
        let source = SequenceSource(
            iterator, batchSize: 1, perform: { perform($0.map(\.index), $1, $2) }, failed: failed)
        return CollectionDriver(
            CollectionWork(
                source: source, names: strategy.names, limit: strategy.limit, failurePolicy: strategy.failurePolicy))
    }

    func start() {
        driver.start { [record] _, isCancelled in
            VirtualThread.place("end")
            record.change { record in
                record.ends.append(isCancelled)
                if record.alive > 0 { record.problems.append("\(record.alive) items are alive at the end") }
                if record.object != nil { record.problems.append("the object is held at the end") }
            }
        }
    }

    func end(_ item: Int) { units.end(item) }

    /// Releases the completion of a held item, if it has begun.
    func lose(_ item: Int) {
        let completion = units.release(item)
        units.state.change { if completion != nil { $0.inFlight.remove(item) } }
    }

    func cancel() {
        record.change { $0.isCancelled = true }
        VirtualThread.withRuntimeLock { driver.cancelSoon() }
        record.change { $0.askedAtCancel = $0.asked }
    }

    func endAll() {
        let isEnded = !record.value.ends.isEmpty
        units.state.change { if $0.kept.isEmpty, !isEnded { $0.problems.append("the run is forgotten") } }
        units.endAll()
    }

    func problems() -> [String] {
        let (record, units) = (record.value, units.state.value)
        var problems = record.problems + units.problems
        if record.ends.count != 1 { problems.append("ends: \(record.ends)") }
        let stopsAtFailure = policy == .cancelRemaining && record.failures.values.contains { $0 != "cancelled" }
        if record.ends == [true], !record.isCancelled || stopsAtFailure { problems.append("ended as cancelled") }
        if record.ends == [false], !record.isAtEnd, !stopsAtFailure { problems.append("ended before the sequence") }
        if record.ends == [false], !stopsAtFailure, units.begun.count != count { problems.append("items are missing") }
        if let most = record.askedAtCancel, record.asked > most { problems.append("taken after the cancellation") }
        if units.begun.sorted() != Array(0..<units.begun.count) { problems.append("begun: \(units.begun)") }
        if !units.inFlight.isEmpty { problems.append("in flight after the end: \(units.inFlight)") }
        let expected = Set(units.begun).intersection(self.units.failing)
        if !expected.isSubset(of: record.failures.keys) { problems.append("failures: \(record.failures)") }
        return problems
    }
}
#endif
