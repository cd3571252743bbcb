import OperationKit

/// A list that grows without copying what it holds, and of which a copy shares all that is not changed afterwards.
///
/// An array that grows copies its elements, for which a lock would have to be held, and needs three times their
/// memory meanwhile.
struct ChunkedList<Element: Sendable>: Sendable {
    /// How many elements there are in each array but the last.
    private static var chunkSize: Int { 1_024 }

    private var chunks: [[Element]] = []
    private(set) var count = 0

    mutating func append(_ element: Element) {
        if count == chunks.count * Self.chunkSize {
            chunks.append([])
            // The first array grows as usual, so that a list of a few elements is small.
            if count > 0 { chunks[chunks.count - 1].reserveCapacity(Self.chunkSize) }
        }
        chunks[chunks.count - 1].append(element)
        count += 1
    }

    subscript(position: Int) -> Element {
        get { chunks[position / Self.chunkSize][position % Self.chunkSize] }
        _modify { yield &chunks[position / Self.chunkSize][position % Self.chunkSize] }
    }
}
