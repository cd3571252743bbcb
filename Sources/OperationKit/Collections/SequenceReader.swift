/// The units of a sequence, which are read one after the other and are not kept, without the type of the sequence.
///
/// It is used by one thread at a time, although by different ones: a ``SequenceStateMachine`` lets one worker read, and
/// finishes the run when none does and no unit is in flight. So it needs no lock.
protocol UnitReader: AnyObject, Sendable {
    /// Reads a unit.
    ///
    /// - Parameter isCancelled: Whether nothing more has to be read. Called before each item.
    /// - Returns: The unit, or `nil` at the end or after a cancellation.
    func read(isCancelled: () -> Bool) -> UnitWork?

    /// Releases the sequence, what performs the items, and what receives the failures. Called when the run is finished.
    func close()
}

/// What there is to do for a unit that has been read, without the type of its items.
struct UnitWork {
    /// The index of the unit, among those of the run.
    let index: Int
    /// Performs the unit. The completion may be called before this returns, later, repeatedly, on any thread.
    let start: (_ completion: @escaping UnitCompletion) -> Void
    /// Delivers the error of each item.
    let fail: (_ error: any Error) -> Void
}

/// Cuts a sequence into units.
///
/// `@unchecked`, because the iterator need not be `Sendable`: the caller has sent it here, and only the thread that
/// reads calls it.
final class SequenceReader<Iterator: IteratorProtocol>: UnitReader, @unchecked Sendable
where Iterator.Element: Sendable {
    typealias Item = Iterator.Element
    typealias Perform = CollectionStrategy<Item>.Perform
    typealias Failed = @Sendable (CollectionFailure<Item>) -> Void

    // The work of a unit takes these from here. So completions that are kept do not hold them when the run is finished.
    private var perform: Perform?
    private var failed: Failed?
    private let unitSize: Int
    /// The index of the next unit.
    private var index = 0
    private var iterator: Iterator?

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - iterator: The items.
    ///   - unitSize: The number of items of a unit, at least 1.
    ///   - perform: Performs the items of a unit.
    ///   - failed: Called with each item of a unit that has failed.
    init(
        _ iterator: sending Iterator, unitSize: Int, perform: @escaping Perform, failed: @escaping Failed
    ) {
        self.iterator = iterator
        self.unitSize = unitSize
        self.perform = perform
        self.failed = failed
    }

    func read(isCancelled: () -> Bool) -> UnitWork? {
        guard !isCancelled(), let first = iterator?.next() else { return nil }
        var items = [first]
        while items.count < unitSize, !isCancelled(), let item = iterator?.next() { items.append(item) }
        defer { index += 1 }
        return UnitWork(
            index: index,
            start: { [self, items] completion in perform?(items, 0..<items.count, completion) },
            fail: { [self, items, index] error in deliver(error, to: items, from: index * unitSize) })
    }

    private func deliver(_ error: any Error, to items: [Item], from start: Int) {
        for (offset, item) in items.enumerated() {
            failed?(CollectionFailure(index: start + offset, item: item, error: error))
        }
    }

    func close() {
        iterator = nil
        perform = nil
        failed = nil
    }
}
