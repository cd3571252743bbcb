/// The observers of the end of one operation, as a value.
///
/// Complexity: adding and removing an observer cost O(1), however many there are.
struct FinishObservers {
    /// The first one, as long as it is there. Usually there is no other.
    private var first: (any FinishObserving)?
    private var others: Others?

    /// A class, because few operations have others.
    private final class Others {
        /// Each with its number in the order of their addition. The observers are held here, so their identities are
        /// not used again.
        var observers: [ObjectIdentifier: (ordinal: Int, observer: any FinishObserving)] = [:]
        var added = 0
    }

    var isEmpty: Bool { first == nil && others?.observers.isEmpty != false }

    mutating func add(_ observer: any FinishObserving) {
        if isEmpty {
            first = observer
        } else if first !== observer {
            let others = others ?? Others()
            self.others = others
            others.added += 1
            others.observers[ObjectIdentifier(observer)] = (others.added, observer)
        }
    }

    /// - Returns: The observer, to be released after unlocking, unless it had been removed before.
    mutating func remove(_ observer: any FinishObserving) -> (any FinishObserving)? {
        if first === observer { return first.take() }
        return others?.observers.removeValue(forKey: ObjectIdentifier(observer))?.observer
    }

    /// Removes all observers.
    ///
    /// - Returns: The observers, in the order of their addition.
    mutating func removeAll() -> [any FinishObserving] {
        let earliest = first.take().map { [$0] } ?? []
        guard let others = others.take() else { return earliest }
        return earliest + others.observers.values.sorted { $0.ordinal < $1.ordinal }.map(\.observer)
    }
}
