/// Reports the end of an item: its error, or `nil` for success. May be called on any thread, repeatedly; the first report
/// counts.
typealias ItemCompletion = @Sendable (_ error: (any Error)?) -> Void

/// What errors call the items of a run.
struct ItemNames {
    /// The type that performs the items.
    let type: String
    /// `item` or `batch`.
    let noun: String
    /// The index of the first item, among those of the whole run.
    var firstIndex = 0

    func name(of index: Int) -> String { "\(noun) \(firstIndex + index)" }
}

/// The items of a run, without their type.
protocol ItemSource: AnyObject, Sendable {
    /// The number of items. `nil` if they have to be read.
    var count: Int? { get }

    /// Reads an item. Called by one thread at a time.
    ///
    /// - Parameter isStopping: Whether nothing more has to be read.
    /// - Returns: The item, or `nil` at the end, or where nothing more has to be read. A batch may be incomplete there.
    func read(isStopping: () -> Bool) -> ItemContents?

    /// Starts an item. Its completion may be called before this returns, later, repeatedly, on any thread.
    func start(_ item: WorkItem)
}

/// What there is to do for an item that was read.
struct ItemContents {
    /// Starts the item.
    let start: (_ completion: @escaping ItemCompletion) -> Void
    /// Delivers the failure of the item, which is known by its index.
    let fail: (_ error: any Error, _ index: Int) -> Void
}

/// The items of an array.
final class ArraySource<Item: Sendable>: ItemSource {
    let count: Int?
    private let size: Int
    private let items: [Item]
    private let perform: CollectionStrategy<Item>.Perform

    /// Creates a source.
    ///
    /// - Parameters:
    ///   - items: The items.
    ///   - batchSize: The number of items of a batch, at least 1.
    ///   - perform: Performs the items of a batch.
    init(_ items: [Item], batchSize: Int, perform: @escaping CollectionStrategy<Item>.Perform) {
        size = batchSize
        count = batchCount(items.count, size: size)
        self.items = items
        self.perform = perform
    }

    func read(isStopping: () -> Bool) -> ItemContents? { nil }

    func start(_ item: WorkItem) {
        perform(items, batchRange(item.index, size: size, count: items.count)) { item.end($0) }
    }
}

/// Cuts a sequence into items.
///
/// `@unchecked`, because the iterator need not be `Sendable`: the caller has sent it here, and only the thread that reads
/// calls it.
final class SequenceSource<Iterator: IteratorProtocol>: ItemSource, @unchecked Sendable
where Iterator.Element: Sendable {
    typealias Item = Iterator.Element
    typealias Failed = @Sendable (CollectionFailure<Item>) -> Void

    private let size: Int
    private var iterator: Iterator
    private let perform: CollectionStrategy<Item>.Perform
    private let failed: Failed

    /// Creates a source.
    ///
    /// - Parameters:
    ///   - iterator: The items.
    ///   - batchSize: The number of items of a batch, at least 1.
    ///   - perform: Performs the items of a batch.
    ///   - failed: Called with each item of a batch that has failed.
    init(
        _ iterator: sending Iterator, batchSize: Int, perform: @escaping CollectionStrategy<Item>.Perform,
        failed: @escaping Failed
    ) {
        size = batchSize
        self.iterator = iterator
        self.perform = perform
        self.failed = failed
    }

    var count: Int? { nil }

    func read(isStopping: () -> Bool) -> ItemContents? {
        guard !isStopping(), let first = iterator.next() else { return nil }
        var items = [first]
        while items.count < size, !isStopping(), let item = iterator.next() { items.append(item) }
        return ItemContents(
            start: { [perform, items] completion in perform(items, 0..<items.count, completion) },
            fail: { [size, failed, items] error, index in
                CollectionFailure.report(error, of: items, from: index * size, to: failed)
            })
    }

    func start(_ item: WorkItem) { item.contents?.start { item.end($0) } }
}

/// Returns the number of batches into which `count` items are cut.
func batchCount(_ count: Int, size: Int) -> Int {
    count == 0 ? 0 : (count - 1) / size + 1
}

/// Returns the indices of the items of a batch. No sum here can overflow, however large the size.
func batchRange(_ batch: Int, size: Int, count: Int) -> Range<Int> {
    let start = batch * size
    return start..<(count - start <= size ? count : start + size)
}
