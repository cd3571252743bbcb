#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A run over a sequence in a run of virtual threads, which writes down what is read, performed and delivered.
final class SequenceSubject: ExplorationSubject, @unchecked Sendable {
    private typealias Completion = @Sendable ((any Error)?) -> Void

    private struct Record {
        var taken = 0
        /// How many items have not been released.
        var alive = 0
        var isReading = false
        var isAtEnd = false
        var begun: [Int] = []
        var inFlight: Set<Int> = []
        var kept: [Int: Completion] = [:]
        /// Held items that may end, or lose their completions.
        var released: Set<Int> = []
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
    private let held: Set<Int>
    private let failing: Set<Int>
    private let policy: FailurePolicy
    private let record: Shared<Record>

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
        let record = Shared(Record())
        (self.count, self.held, self.failing, self.policy, self.record) = (count, held, failing, policy, record)
        let operation = ParallelItems(limit, 1, policy) { items, completion in
            SequenceSubject.perform(items[0], isHeld: held.contains(items[0]), limit, record) { error in
                completion(failing.contains(items[0]) ? TestError.first : error)
            }
        }
        record.change { $0.object = operation }
        let cancel = Shared<(@Sendable () -> Void)?>(nil)
        VirtualThread.expectRelease(of: operation, "the object")
        let read: @Sendable (Int) -> Int? = { index in
            record.change { record in
                if record.isReading { record.problems.append("two threads read") }
                record.isReading = true
                record.asked += 1
            }
            VirtualThread.place("reads")
            if index == last { cancel.value?() }
            return record.change { record in
                record.isReading = false
                if index < count { record.taken += 1 } else { record.isAtEnd = true }
                return index < count ? index : nil
            }
        }
        let failed: @Sendable (CollectionFailure<Item>) -> Void = { failure in
            VirtualThread.place("receives a failure")
            let thread = VirtualThread.current.map { ObjectIdentifier($0) }
            record.change { record in
                if record.reporting.contains(thread) { record.problems.append("delivered inside a completion") }
                if !record.ends.isEmpty { record.problems.append("delivered after the end") }
                record.failures[failure.index] = text(failure.error)
            }
        }
        let item: @Sendable (Int) -> Item? = { index in read(index).map { Item($0, limit, record) } }
        driver = SequenceSubject.driver(of: operation, item, failed)
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

    private static func perform(
        _ item: Int, isHeld: Bool, _ limit: Int, _ record: Shared<Record>, _ completion: @escaping Completion
    ) {
        record.change { record in
            record.begun.append(item)
            record.inFlight.insert(item)
            if record.inFlight.count > limit { record.problems.append("\(record.inFlight.count) are in flight") }
            if !record.ends.isEmpty { record.problems.append("\(item) began after the end") }
        }
        VirtualThread.place("item")
        let end: Completion = { error in
            let thread = VirtualThread.current.map { ObjectIdentifier($0) }
            record.change { record in
                record.inFlight.remove(item)
                record.reporting.insert(thread)
            }
            completion(error)
            record.change { _ = $0.reporting.remove(thread) }
        }
        let isOver = record.change { record in
            if isHeld, !record.released.contains(item) {
                record.kept[item] = end
                return false
            }
            return true
        }
        if isOver { end(nil) }
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

    /// Lets a held item end, now or as soon as it begins.
    func end(_ item: Int) {
        release(item)?(nil)
    }

    /// Releases the completion of a held item, if it has begun.
    func lose(_ item: Int) {
        let completion = release(item)
        record.change { if completion != nil { $0.inFlight.remove(item) } }
    }

    private func release(_ item: Int) -> Completion? {
        record.change { record in
            record.released.insert(item)
            return record.kept.removeValue(forKey: item)
        }
    }

    func cancel() {
        record.change { $0.isCancelled = true }
        VirtualThread.withRuntimeLock { driver.cancelSoon() }
        record.change { $0.askedAtCancel = $0.asked }
    }

    func endAll() {
        record.change { if $0.kept.isEmpty, $0.ends.isEmpty { $0.problems.append("the run is forgotten") } }
        for item in held { end(item) }
    }

    func problems() -> [String] {
        let record = record.value
        var problems = record.problems
        if record.ends.count != 1 { problems.append("ends: \(record.ends)") }
        let stopsAtFailure = policy == .cancelRemaining && record.failures.values.contains { $0 != "cancelled" }
        if record.ends == [true], !record.isCancelled || stopsAtFailure { problems.append("ended as cancelled") }
        if record.ends == [false], !record.isAtEnd, !stopsAtFailure { problems.append("ended before the sequence") }
        if record.ends == [false], !stopsAtFailure, record.begun.count != count { problems.append("items are missing") }
        if let most = record.askedAtCancel, record.asked > most { problems.append("taken after the cancellation") }
        if record.begun.sorted() != Array(0..<record.begun.count) { problems.append("begun: \(record.begun)") }
        if !record.inFlight.isEmpty { problems.append("in flight after the end: \(record.inFlight)") }
        let expected = Set(record.begun).intersection(failing)
        if !expected.isSubset(of: record.failures.keys) { problems.append("failures: \(record.failures)") }
        return problems
    }
}
#endif
