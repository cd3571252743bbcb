/// Reports the end of an item: its error, or `nil` for success. May be called on any thread, repeatedly; the first report
/// counts.
typealias ItemCompletion = @Sendable (_ error: (any Error)?) -> Void

/// What errors call the items of a run.
struct ItemNames: Sendable {
    /// The type that performs the items.
    let type: String
    /// `item` or `batch`.
    let unit: String
    /// The index of the first item, among those of the whole run.
    var firstIndex = 0

    func name(of index: Int) -> String { "\(unit) \(firstIndex + index)" }
}

/// What a run has to do with which items, whose type only the closures know.
final class CollectionWork: Sendable {
    /// What there is to do for an item that was read: starting it, and delivering its failure.
    typealias Contents = (
        start: (_ completion: @escaping ItemCompletion) -> Void, fail: (_ error: any Error, _ index: Int) -> Void
    )

    let names: ItemNames
    /// The number of items. `nil` if they have to be read.
    let count: Int?
    /// The maximum number of items in flight, at least 1.
    let limit: Int
    let failurePolicy: FailurePolicy
    /// The tasks of the items in flight, if they are performed in tasks.
    let tasks: InFlightTasks?
    /// Reads an item, until nothing more has to be read. Called by one thread at a time. The last batch may be incomplete.
    let read: @Sendable (_ isStopping: () -> Bool) -> Contents?
    /// Starts an item. Its completion may be called before this returns, later, repeatedly, on any thread.
    let start: @Sendable (WorkItem) -> Void

    init(
        _ names: ItemNames, count: Int?, limit: Int, failurePolicy: FailurePolicy, tasks: InFlightTasks? = nil,
        read: @escaping @Sendable (_ isStopping: () -> Bool) -> Contents? = { _ in nil },
        start: @escaping @Sendable (WorkItem) -> Void
    ) {
        (self.names, self.count, self.limit, self.failurePolicy) = (names, count, limit, failurePolicy)
        (self.tasks, self.read, self.start) = (tasks, read, start)
    }

    /// Cuts a sequence into units of at most `unitSize` items. The caller has sent the iterator here, and only the thread
    /// that reads calls it.
    convenience init<Items: IteratorProtocol>(
        reading items: sending Items, _ names: ItemNames, unitSize: Int, limit: Int, failurePolicy: FailurePolicy,
        perform: @escaping CollectionStrategy<Items.Element>.Perform,
        failed: @escaping @Sendable (CollectionFailure<Items.Element>) -> Void
    ) where Items.Element: Sendable {
        var items = items
        let next = UncheckedSendable({ items.next() })
        self.init(names, count: nil, limit: limit, failurePolicy: failurePolicy) { isStopping in
            guard !isStopping(), let first = next.value() else { return nil }
            var unit = [first]
            while unit.count < unitSize, !isStopping(), let item = next.value() { unit.append(item) }
            return (
                { [unit] completion in perform(unit, unit.indices, completion) },
                { [unit] error, index in
                    CollectionFailure.deliver(error, of: unit, from: index * unitSize, to: failed)
                }
            )
        } start: { item in
            item.contents?.start { item.end($0) }
        }
    }
}

/// Returns the number of units into which `count` items are cut.
func unitCount(_ count: Int, size: Int) -> Int {
    count == 0 ? 0 : (count - 1) / size + 1
}

/// Returns the indices of the items of a unit. No sum here can overflow, however large the size.
func unitRange(_ unit: Int, size: Int, count: Int) -> Range<Int> {
    let start = unit * size
    return start..<(count - start <= size ? count : start + size)
}
